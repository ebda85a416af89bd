{{- define "leaf.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "leaf.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "leaf.labels" -}}
{{ include "leaf.selector" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "leaf.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- /* The configuration of every node, without what is secret or the pod's own. */ -}}
{{- define "leaf.config" -}}
{{- $static := eq .Values.kind "StatefulSet" }}
{{- $snowflake := dict "enable" .Values.snowflake.enabled }}
{{- if .Values.snowflake.enabled }}
{{- $_ := set $snowflake "registry" (ternary "static" .Values.snowflake.registry $static) }}
{{- if $static }}
{{- $_ := set $snowflake "worker-from-hostname" true }}
{{- $_ := set $snowflake "worker-offset" (int .Values.snowflake.workerOffset) }}
{{- else if .Values.snowflake.registryAddress }}
{{- $_ := set $snowflake "registry-address" .Values.snowflake.registryAddress }}
{{- end }}
{{- end }}
{{- $segment := dict "enable" .Values.segment.enabled }}
{{- if and .Values.segment.enabled .Values.segment.clusterFence }}
{{- $_ := set $segment "cluster-fence" .Values.segment.clusterFence }}
{{- end }}
{{- $config := dict "data-dir" "/data/leaf" "store-file" "/etc/leaf/store/url" "segment" $segment "snowflake" $snowflake
  "http" (dict "addr" ":8080") "drain-delay" (printf "%ds" (int .Values.drainSeconds)) "shutdown-timeout" (printf "%ds" (int .Values.shutdownSeconds))
  "log" (dict "format" "json") }}
{{- if .Values.auth.existingSecret }}
{{- $_ := set $config "auth" (dict "token-file" "/etc/leaf/auth/token") }}
{{- else }}
{{- $_ := set $config "auth" (dict "open" true) }}
{{- end }}
{{- if .Values.tls.existingSecret }}
{{- $_ := set $config "tls" (dict "cert" "/etc/leaf/tls/tls.crt" "key" "/etc/leaf/tls/tls.key") }}
{{- end }}
{{- $more := .Values.config | default "{}" | fromYaml }}
{{- if hasKey $more "Error" }}{{ fail (printf "config: %s" $more.Error) }}{{ end }}
{{- $config = mergeOverwrite $config $more }}
{{- if ne (index $config "data-dir" | toString) "/data/leaf" }}
{{- fail "config: data-dir: every pod has its data directory in /data/leaf, where its volume and its probes are. Leave the key out" }}
{{- end }}
{{- $name := dig "snowflake" "name" "" $config }}
{{- if not (kindIs "string" $name) }}
{{- fail (printf "config: snowflake.name: put it in quotes. Without them Helm takes it for the number %v, and the pods would have worker IDs from another place than nodes and Java servers with the name as you have written it" $name) }}
{{- end }}
{{- /* All pods have this configuration: a worker ID in it would be that of each. */ -}}
{{- if dig "snowflake" "enable" true $config }}
{{- if hasKey (dig "snowflake" dict $config) "worker-id" }}
{{- fail "config: snowflake.worker-id: all pods would have this worker ID, and repeat IDs. Use kind: StatefulSet, which gives each pod its own, from workerOffset on" }}
{{- end }}
{{- if and (not $static) (eq "static" (dig "snowflake" "registry" "" $config)) }}
{{- fail "config: snowflake.registry: \"static\": the pods of a Deployment have no worker ID of their own. Use kind: StatefulSet, or a registry that leases them: sql, etcd or zookeeper-recycle" }}
{{- end }}
{{- end }}
{{- $config | toYaml }}
{{- end }}

{{- define "leaf.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "leaf.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{- define "leaf.mounts" -}}
- { name: data, mountPath: /data }
- { name: config, mountPath: /etc/leaf/config, readOnly: true }
- { name: store, mountPath: /etc/leaf/store, readOnly: true }
{{- if .Values.auth.existingSecret }}
- { name: auth, mountPath: /etc/leaf/auth, readOnly: true }
{{- end }}
{{- if .Values.tls.existingSecret }}
- { name: tls, mountPath: /etc/leaf/tls, readOnly: true }
{{- end }}
{{- end }}

{{- define "leaf.secrets" -}}
- name: store
  secret:
    secretName: {{ .Values.store.existingSecret }}
    defaultMode: 0440
    items: [{ key: {{ .Values.store.key }}, path: url }]
{{- if .Values.auth.existingSecret }}
- name: auth
  secret:
    secretName: {{ .Values.auth.existingSecret }}
    defaultMode: 0440
    items: [{ key: {{ .Values.auth.key }}, path: token }]
{{- end }}
{{- if .Values.tls.existingSecret }}
- name: tls
  secret: { secretName: {{ .Values.tls.existingSecret }}, defaultMode: 0440 }
{{- end }}
{{- end }}

{{- /* Where a pod may run: of nodes, and of the Job before the first installation, which would wait for ever elsewhere. */ -}}
{{- define "leaf.placement" -}}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* What every pod reaches: names, databases and registries. */ -}}
{{- define "leaf.egress" -}}
- ports:
    - { port: 53, protocol: UDP }
    - { port: 53, protocol: TCP }
{{- with .Values.networkPolicy.egressPorts }}
- ports:
    {{- range . }}
    - { port: {{ . }} }
    {{- end }}
{{- end }}
{{- end }}
