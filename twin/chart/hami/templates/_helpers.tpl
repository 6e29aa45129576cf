{{- /* all objects are named after this: the release, if that says hami already */ -}}
{{- define "hami.name" -}}
{{- $chart := .Values.nameOverride | default .Chart.Name -}}
{{- $release := ternary .Release.Name (printf "%s-%s" .Release.Name $chart) (contains $chart .Release.Name) -}}
{{ .Values.fullnameOverride | default $release | trunc 50 | trimSuffix "-" }}
{{- end -}}

{{- define "hami.namespace" -}}
{{ .Values.namespaceOverride | default .Release.Namespace }}
{{- end -}}

{{- define "hami.selector" -}}
app.kubernetes.io/name: {{ .Values.nameOverride | default .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "hami.labels" -}}
{{ include "hami.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- with .Values.global.labels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* registry/repository:tag, the global registry first: image, tag, root */ -}}
{{- define "hami.image" -}}
{{ .root.Values.global.imageRegistry | default .image.registry }}/{{ .image.repository }}:{{ .image.tag | default .tag | default .root.Values.global.imageTag }}
{{- end -}}

{{- /* pull secrets of everything and of these images: images, root */ -}}
{{- define "hami.pullSecrets" -}}
{{- $names := .root.Values.global.imagePullSecrets -}}
{{- range .images }}{{- $names = concat $names (.pullSecrets | default list) }}{{- end -}}
{{- with uniq $names -}}
imagePullSecrets: [{{ range $i, $name := . }}{{ if $i }}, {{ end }}{name: {{ $name }}}{{ end }}]
{{- end -}}
{{- end -}}

{{- /* where a pod may run: nodeSelector, tolerations */ -}}
{{- define "hami.placement" -}}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* the file that the scheduler and the plugin share */ -}}
{{- define "hami.device-config" -}}
{{- $own := index .Values "device-config" "content" -}}
{{- if $own -}}
{{ $own }}
{{- else -}}
nvidia:
  resourceCountName: {{ .Values.resourceName }}
  resourceMemoryName: {{ .Values.resourceMem }}
  resourceMemoryPercentageName: {{ .Values.resourceMemPercentage }}
  resourceCoreName: {{ .Values.resourceCores }}
  resourcePriorityName: {{ .Values.resourcePriority }}
  overwriteEnv: {{ .Values.scheduler.overwriteEnv }}
  preConfiguredDeviceMemory: {{ .Values.devicePlugin.preConfiguredDeviceMemory }}
  deviceSplitCount: {{ .Values.devicePlugin.deviceSplitCount }}
  deviceMemoryScaling: {{ .Values.devicePlugin.deviceMemoryScaling }}
  deviceCoreScaling: {{ .Values.devicePlugin.deviceCoreScaling }}
  enableNumaTopology: {{ .Values.devicePlugin.enableNumaTopology }}
  gpuCorePolicy: {{ .Values.devices.nvidia.gpuCorePolicy }}
  libCudaLogLevel: {{ .Values.devices.nvidia.libCudaLogLevel }}
  runtimeClassName: {{ .Values.devicePlugin.runtimeClassName | quote }}
{{- end -}}
{{- end -}}
