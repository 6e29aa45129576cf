{{- define "gpu-operator.labels" -}}
app.kubernetes.io/name: gpu-operator
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- /* image of a component: repository/image:version */ -}}
{{- define "image" -}}
{{- $c := .component -}}
{{ $c.repository }}/{{ $c.image }}:{{ $c.version | default .root.Chart.AppVersion }}
{{- end -}}

{{- /* head of an operand's DaemonSet, up to its pod's labels: name, root */ -}}
{{- define "operand.head" -}}
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    app: {{ .name }}
    {{- include "gpu-operator.labels" .root | nindent 4 }}
spec:
  selector:
    matchLabels: {app: {{ .name }}}
  updateStrategy:
    {{- if or .onDelete (eq .root.Values.daemonsets.updateStrategy "OnDelete") }}
    type: OnDelete
    {{- else }}
    type: RollingUpdate
    rollingUpdate: {maxUnavailable: {{ .root.Values.daemonsets.rollingUpdate.maxUnavailable }}}
    {{- end }}
  template:
    metadata:
      labels:
        app: {{ .name }}
        {{- with .root.Values.daemonsets.labels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with .root.Values.daemonsets.annotations }}
      annotations: {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      priorityClassName: {{ .root.Values.daemonsets.priorityClassName }}
      serviceAccountName: {{ .account | default "nvidia-operands" }}
      nodeSelector:
        nvidia.com/gpu.deploy.{{ .deploy }}: "true"
        {{- range $key, $value := .select }}
        {{ $key }}: {{ $value | quote }}
        {{- end }}
      {{- with .root.Values.daemonsets.tolerations }}
      tolerations: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .component.imagePullSecrets }}
      imagePullSecrets: [{{ range $i, $name := . }}{{ if $i }}, {{ end }}{name: {{ $name }}}{{ end }}]
      {{- end }}
{{- end -}}

{{- /* init container that waits for an earlier stage: stage, root */ -}}
{{- define "operand.wait" -}}
- name: {{ .stage }}-validation
  image: {{ include "image" (dict "component" .root.Values.validator "root" .root) }}
  command: [sh, -c, "until [ -f /run/nvidia/validations/{{ .stage }}-ready ]; do sleep 5; done"]
  volumeMounts: [{name: validations, mountPath: /run/nvidia/validations}]
{{- end -}}

{{- /* environment of the config-manager: oneshot, process, root */ -}}
{{- define "config-manager.env" -}}
- {name: ONESHOT, value: {{ .oneshot | quote }}}
- {name: NODE_NAME, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
- {name: NODE_LABEL, value: nvidia.com/device-plugin.config}
- {name: CONFIG_FILE_SRCDIR, value: /available-configs}
- {name: CONFIG_FILE_DST, value: /config/config.yaml}
- {name: DEFAULT_CONFIG, value: {{ .root.Values.devicePlugin.config.default | quote }}}
- {name: FALLBACK_STRATEGIES, value: empty}
- {name: SEND_SIGNAL, value: {{ not .oneshot | quote }}}
- {name: SIGNAL, value: {{ ternary "" "1" .oneshot | quote }}}
- {name: PROCESS_TO_SIGNAL, value: {{ ternary "" .process .oneshot | quote }}}
{{- end -}}

{{- define "config-manager.mounts" -}}
- {name: configs, mountPath: /available-configs}
- {name: config, mountPath: /config}
{{- end -}}
