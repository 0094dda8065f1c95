{{/* What each tier is: its program, the secrets that it has and no other, and where it listens. */}}
{{- define "mss.tiers" -}}
ingest:
  program: mss-ingest
  secrets: [amqp_ingest, sealing_backend]
  settings: {MSS_SEALING_KEYS_FILE: /run/secrets/mss/sealing_backend}
  listens: {prefix: MSS_INGEST, port: 7080, from: backendsFrom}
writer:
  program: mss-oplog-writer
  database: true
  secrets: [amqp_writer, postgres_writer, master_keys]
  settings: {MSS_MASTER_KEYS_FILE: /run/secrets/mss/master_keys}
gateway:
  program: mss-gateway
  secrets: [amqp_gateway, sealing_device]
  settings: {MSS_SEALING_KEYS_FILE: /run/secrets/mss/sealing_device}
  listens: {prefix: MSS_GATEWAY, port: 7443, from: devicesFrom}
validator:
  program: mss-session-validator
  secrets: [amqp_validator, sealing_callout]
  settings: {MSS_SEALING_KEYS_FILE: /run/secrets/mss/sealing_callout}
relay:
  program: mss-relay
  database: true
  secrets: [amqp_relay, postgres_relay, sealing_callout]
  settings: {MSS_SEALING_KEYS_FILE: /run/secrets/mss/sealing_callout}
statistics:
  program: mss-statistics
  database: true
  secrets: [amqp_statistics, postgres_statistics]
  settings: {}
console:
  program: mss-console
  database: true
  secrets: [amqp_console, postgres_console, console_sealing_key]
  settings: {MSS_CONSOLE_SEALING_KEY_FILE: /run/secrets/mss/console_sealing_key}
  listens: {prefix: MSS_CONSOLE, port: 7090, from: peopleFrom}
{{- if .Values.notifier.enabled }}
notifier:
  program: mss-notifier
  database: true
  secrets: [amqp_notifier, postgres_notifier]
  settings: {MSS_NOTIFIER_APPS_FILE: /run/secrets/wake-up/apps.json}
  files: /run/secrets/wake-up
{{- end }}
{{- end }}

{{- define "mss.name" -}}
{{ printf "%s-%s" .release .tier | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "mss.selector" -}}
app.kubernetes.io/name: mobile-sync-service
app.kubernetes.io/instance: {{ .release }}
app.kubernetes.io/component: {{ .tier }}
{{- end }}

{{- define "mss.labels" -}}
{{ include "mss.selector" . }}
app.kubernetes.io/version: {{ .version | quote }}
app.kubernetes.io/managed-by: Helm
{{- end }}

{{- define "mss.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* How a process connects to the database, as which user. */}}
{{- define "mss.postgres" -}}
MSS_POSTGRES_HOST: {{ .root.Values.postgres.host | quote }}
MSS_POSTGRES_PORT: {{ .root.Values.postgres.port | quote }}
MSS_POSTGRES_DATABASE: {{ .root.Values.postgres.database | quote }}
MSS_POSTGRES_USER: {{ .user | quote }}
MSS_POSTGRES_PASSWORD_FILE: /run/secrets/mss/{{ .password }}
{{- if .root.Values.postgres.tls }}
MSS_POSTGRES_TLS: "on"
MSS_POSTGRES_AUTHORITY_FILE: /run/secrets/mss/authority
{{- end }}
{{- end }}

{{/* All settings of a tier, what the values say last. */}}
{{- define "mss.settings" -}}
{{- $own := index .root.Values .tier }}
{{- $base := dict }}
{{- $_ := set $base "MSS_LOG_FORMAT" "json" }}
{{- $_ := set $base "MSS_HEALTH_HOST" "0.0.0.0" }}
{{- $_ := set $base "MSS_HEALTH_PORT" "8080" }}
{{- $_ := set $base "MSS_AMQP_HOST" .root.Values.rabbitmq.host }}
{{- $_ := set $base "MSS_AMQP_PORT" (toString .root.Values.rabbitmq.port) }}
{{- $_ := set $base "MSS_AMQP_VHOST" .root.Values.rabbitmq.vhost }}
{{- $_ := set $base "MSS_AMQP_USER" .tier }}
{{- $_ := set $base "MSS_AMQP_PASSWORD_FILE" (printf "/run/secrets/mss/amqp_%s" .tier) }}
{{- if .root.Values.rabbitmq.tls }}
{{- $_ := set $base "MSS_AMQP_TLS" "on" }}
{{- $_ := set $base "MSS_AMQP_AUTHORITY_FILE" "/run/secrets/mss/authority" }}
{{- end }}
{{- if .what.database }}
{{- $database := dict "root" .root "user" .tier "password" (printf "postgres_%s" .tier) }}
{{- $base = mergeOverwrite $base (include "mss.postgres" $database | fromYaml) }}
{{- end }}
{{- with .what.listens }}
{{- $_ := set $base (printf "%s_HOST" .prefix) "0.0.0.0" }}
{{- $_ := set $base (printf "%s_PORT" .prefix) (toString .port) }}
{{- $_ := set $base (printf "%s_CERTIFICATE_FILE" .prefix) "/run/secrets/tls/tls.crt" }}
{{- $_ := set $base (printf "%s_PRIVATE_KEY_FILE" .prefix) "/run/secrets/tls/tls.key" }}
{{- end }}
{{- toYaml (mergeOverwrite $base .what.settings .root.Values.settings $own.settings) }}
{{- end }}

{{/* No root, nothing to write to, no capabilities. */}}
{{- define "mss.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "mss.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{/* The files of one tier out of the common secret: no tier sees another's. */}}
{{- define "mss.secretVolume" -}}
- name: secrets
  secret:
    secretName: {{ .root.Values.secretName }}
    defaultMode: 0440
    items:
    {{- range .names }}
      - {key: {{ . }}, path: {{ . }}}
    {{- end }}
    {{- if or .root.Values.rabbitmq.tls .root.Values.postgres.tls }}
      - {key: authority, path: authority}
    {{- end }}
{{- end }}
