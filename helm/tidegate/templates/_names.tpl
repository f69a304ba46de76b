{{- define "tidegate.name" -}}
{{- if contains "tidegate" .Release.Name }}{{ .Release.Name | trunc 53 | trimSuffix "-" }}{{ else }}{{ printf "%s-tidegate" .Release.Name | trunc 53 | trimSuffix "-" }}{{ end }}
{{- end }}
{{- define "tidegate.selector" -}}
app.kubernetes.io/name: tidegate
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "tidegate.labels" -}}
{{ include "tidegate.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}
{{- /* The settings that can't change while events are moved: of classes their names in order, of the rest all but what the page
docs/operations.md lists. A test holds it to proxy/config/difference.py. */ -}}
{{- define "tidegate.fixed" -}}
{{- $settings := .Values.settings -}}
{{- $classes := ternary (list "P1" "P2" "P3") (include "tidegate.classes" . | fromJsonArray) (empty $settings.classes) -}}
{{- $limits := omit ($settings.limits | default dict) "inbox_events" "inbox_bytes" "inbox_low" "inboxes_bytes" "uncommitted_events" -}}
{{- $live := list "event_types" "defaults" "routes" "class_budget" "throttling" "statistics" "detector" "retention" -}}
{{- $fixed := dict "limits" $limits "classes" $classes -}}
{{- range $part, $said := omit $settings "limits" "classes" -}}
{{- if not (has $part $live) }}{{ $_ := set $fixed $part $said }}{{ end -}}
{{- end -}}
{{ toJson $fixed }}
{{- end }}
{{- /* The names of the classes, most important first, as JSON: the order of `classes` is their importance, and Helm sorts
what a mapping holds by name. */ -}}
{{- define "tidegate.classes" -}}
{{- $said := keys (.Values.settings.classes | default dict) | sortAlpha -}}
{{- $names := .Values.classes | default $said -}}
{{- if not .Values.classes -}}
{{- range $said -}}
{{- if not (regexMatch "^P[0-9]$" .) }}{{ fail (printf "settings.classes has %s: name all classes in classes, most important first, as in classes: [%s, ...]" . .) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- if ne (toJson (sortAlpha $names)) (toJson $said) }}{{ fail (printf "classes must name each of settings.classes (%s) once, most important first" (join ", " $said)) }}{{ end -}}
{{ toJson $names }}
{{- end }}
{{- define "tidegate.port" -}}
{{ .Values.settings.admin.listen | splitList ":" | last }}
{{- end }}
{{- define "tidegate.scheme" -}}
{{ if .Values.settings.admin.tls }}HTTPS{{ else }}HTTP{{ end }}
{{- end }}
{{- define "tidegate.container" -}}
name: tidegate
image: {{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- if .Values.sidecarOf }}
restartPolicy: Always
{{- end }}
{{- with .Values.env }}
env:
  {{- toYaml . | nindent 2 }}
{{- end }}
ports:
  - {name: admin, containerPort: {{ include "tidegate.port" . }}}
livenessProbe:
  httpGet: {path: /health, port: admin, scheme: {{ include "tidegate.scheme" . }}}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
readinessProbe:
  httpGet: {path: /ready, port: admin, scheme: {{ include "tidegate.scheme" . }}}
  periodSeconds: 5
  timeoutSeconds: 5
resources:
  {{- toYaml .Values.resources | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: settings, mountPath: /etc/tidegate, readOnly: true}
  - {name: metric-log, mountPath: /var/lib/tidegate}
  {{- if .Values.secretFiles }}
  - {name: secrets, mountPath: /run/secrets/tidegate, readOnly: true}
  {{- end }}
{{- end }}
