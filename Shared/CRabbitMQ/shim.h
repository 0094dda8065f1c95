// librabbitmq, with C forms of what does not import into Swift: variadic functions and macros.
#pragma once
#include <stdint.h>
#include <sys/time.h>
#include <amqp.h>
#include <amqp_framing.h>
#include <amqp_tcp_socket.h>
#include <amqp_ssl_socket.h>

static inline amqp_rpc_reply_t mss_amqp_login_plain(
    amqp_connection_state_t state, const char *vhost, int channel_max, int frame_max, int heartbeat_seconds,
    const amqp_table_t *properties, const char *user, const char *password) {
  return amqp_login_with_properties(
      state, vhost, channel_max, frame_max, heartbeat_seconds, properties, AMQP_SASL_METHOD_PLAIN, user, password);
}
