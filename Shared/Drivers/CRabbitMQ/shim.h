// librabbitmq, with C functions for macros and variadic functions, which Swift does not import.
#pragma once
#include <stdint.h>
#include <sys/time.h>
#include <amqp.h>
#include <amqp_framing.h>
#include <amqp_tcp_socket.h>
#include <amqp_ssl_socket.h>

static inline amqp_table_entry_t mss_amqp_can(const char *capability) {
  amqp_table_entry_t entry = {.key = amqp_cstring_bytes(capability)};
  entry.value.kind = AMQP_FIELD_KIND_BOOLEAN;
  entry.value.value.boolean = 1;
  return entry;
}

// Declares two capabilities, which the library does not declare. Without them, the broker does not notify a client that
// a consumer's queue was deleted or that it accepts no more messages (RabbitMQ, "Consumer Cancel Notification",
// "Blocked Connections").
static inline amqp_rpc_reply_t mss_amqp_login_plain(
    amqp_connection_state_t state, const char *vhost, int channel_max, int frame_max, int heartbeat_seconds,
    const char *connection_name, const char *user, const char *password) {
  amqp_table_entry_t capabilities[2] = {mss_amqp_can("consumer_cancel_notify"), mss_amqp_can("connection.blocked")};
  amqp_table_entry_t properties[2] = {
      {.key = amqp_cstring_bytes("connection_name")}, {.key = amqp_cstring_bytes("capabilities")}};
  properties[0].value.kind = AMQP_FIELD_KIND_UTF8;
  properties[0].value.value.bytes = amqp_cstring_bytes(connection_name);
  properties[1].value.kind = AMQP_FIELD_KIND_TABLE;
  properties[1].value.value.table.num_entries = 2;
  properties[1].value.value.table.entries = capabilities;
  amqp_table_t table = {.num_entries = 2, .entries = properties};
  return amqp_login_with_properties(
      state, vhost, channel_max, frame_max, heartbeat_seconds, &table, AMQP_SASL_METHOD_PLAIN, user, password);
}
