// The Kubernetes provider with an empty schema: enough for programs in Python,
// whose SDK brings its own; import and reads without inputs would want the real one.
package main

import "github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/provider"

func main() {
	provider.Serve("kubernetes", "4.25.0", []byte("{}"), []byte("{}"))
}
