import CRabbitMQ
import ConnectionThread
import Glibc

/// One open connection of the C library; all calls are made on the connection's thread.
///
/// Channel 1 carries consumers and unconfirmed messages. Channel 2 is in confirm mode and carries confirmed messages.
/// Channel 3 is for requests about queues. It is opened on demand, because the broker closes it when a queue is
/// missing.
final class AMQPConnection {
    /// An incoming event.
    enum Incoming {
        case delivery(consumer: Int, AMQPDelivery)
        case returned(exchange: String, routingKey: String, body: [UInt8])
        case confirmed(UInt64, multiple: Bool, isAck: Bool)
        case blocked(Bool)
    }

    private static let mainChannel: UInt16 = 1
    private static let confirmChannel: UInt16 = 2
    private static let inquiryChannel: UInt16 = 3

    /// The library's connection.
    let state: OpaquePointer
    private let generation: UInt64
    private let watchdog: Watchdog
    private var routes: [AMQPRoute: RouteBytes] = [:]
    private var isInquiryOpen = false
    let descriptor: Int32

    /// Connects to one of the broker's addresses and logs in.
    ///
    /// - Parameter limit: of the whole, and of each later call until ``limitCalls(to:)``; nil: the configuration's.
    init(
        _ configuration: AMQPConfiguration, at address: ServerAddress, generation: UInt64, watchdog: Watchdog,
        limit callLimit: Duration? = nil
    ) throws(AMQPError) {
        guard let state = amqp_new_connection() else {
            throw AMQPError(code: .connection, message: "out of memory")
        }
        let callLimit = callLimit ?? configuration.callLimit
        let deadline = ContinuousClock.now + callLimit
        var limit = timeval(callLimit)
        do throws(AMQPError) {
            let socket = try Self.socket(state, configuration.security)
            let status = amqp_socket_open_noblock(socket, address.host, Int32(address.port), &limit)
            guard status == AMQP_STATUS_OK.rawValue else {
                throw AMQPError(code: .connection, message: "the broker is not reached: \(Self.text(status))")
            }
        } catch {
            amqp_destroy_connection(state)
            throw error
        }
        self.state = state
        self.generation = generation
        self.watchdog = watchdog
        descriptor = amqp_get_sockfd(state)
        watchdog.attach(descriptor)
        watchdog.expect(by: deadline)
        var milliseconds: UInt32 = 5_000
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_USER_TIMEOUT, &milliseconds, 4)
        limitCalls(to: callLimit)
        try logIn(configuration)
    }

    /// Sets how long a call waits for its answer.
    func limitCalls(to limit: Duration) {
        var limit = timeval(limit)
        amqp_set_rpc_timeout(state, &limit)
    }

    deinit {
        watchdog.detach()
        for route in routes.values { route.free() }
        amqp_destroy_connection(state)
    }

    /// Creates a socket that belongs to this connection, which frees it.
    private static func socket(_ state: OpaquePointer, _ security: AMQPSecurity?) throws(AMQPError) -> OpaquePointer {
        guard let security else {
            guard let socket = amqp_tcp_socket_new(state) else {
                throw AMQPError(code: .connection, message: "out of memory")
            }
            return socket
        }
        guard let socket = amqp_ssl_socket_new(state) else {
            throw AMQPError(code: .connection, message: "out of memory")
        }
        func check(_ status: Int32, _ subject: String) throws(AMQPError) {
            guard status == AMQP_STATUS_OK.rawValue else {
                throw AMQPError(code: .connection, message: "TLS: \(subject) cannot be used: \(text(status))")
            }
        }
        amqp_ssl_socket_set_verify_peer(socket, 1)
        amqp_ssl_socket_set_verify_hostname(socket, 1)
        try check(
            amqp_ssl_socket_set_ssl_versions(socket, AMQP_TLSv1_2, AMQP_TLSvLATEST), "TLS 1.2 as the oldest version")
        try check(
            amqp_ssl_socket_set_cacert(socket, security.authorityFile), "the authority file \(security.authorityFile)")
        if !security.certificateFile.isEmpty {
            try check(
                amqp_ssl_socket_set_key(socket, security.certificateFile, security.privateKeyFile),
                "the certificate \(security.certificateFile) with its key \(security.privateKeyFile)")
        }
        return socket
    }

    private func logIn(_ configuration: AMQPConfiguration) throws(AMQPError) {
        let reply = mss_amqp_login_plain(
            state, configuration.virtualHost, 0, 131_072, Int32(configuration.heartbeat.components.seconds),
            configuration.connectionName, configuration.user, configuration.password)
        try check(reply, "log in")
        for channel in [Self.mainChannel, Self.confirmChannel] {
            amqp_channel_open(state, channel)
            try check("open a channel")
        }
        amqp_confirm_select(state, Self.confirmChannel)
        try check("turn confirms on")
    }

    // MARK: Topology

    /// Declares all queues and bindings; each declaration is idempotent.
    ///
    /// - Parameter queueType: of durable queues.
    func declare(_ topology: AMQPTopology, as queueType: AMQPQueueType = .classic) throws(AMQPError) {
        for queue in topology.queues { try declare(queue, as: queueType) }
        for binding in topology.bindings {
            _ = withBytes(binding.queue, binding.exchange) { queue, exchange in
                withBytes(binding.routingKey, "") { key, _ in
                    amqp_queue_bind(state, Self.mainChannel, queue, exchange, key, amqp_empty_table)
                }
            }
            try check("bind queue \(binding.queue)")
        }
    }

    private func declare(_ queue: AMQPQueue, as queueType: AMQPQueueType) throws(AMQPError) {
        var arguments = Arguments()
        // A classic queue is declared without its type, which is the broker's default.
        if queue.durable, queueType == .quorum { arguments.add("x-queue-type", queueType.rawValue) }
        if let maxLength = queue.maxLength {
            arguments.add("x-max-length", Int64(maxLength))
            arguments.add("x-overflow", "reject-publish")
        }
        arguments.withTable { table in
            _ = withBytes(queue.name, "") { name, _ in
                amqp_queue_declare(
                    state, Self.mainChannel, name, 0, queue.durable ? 1 : 0, queue.exclusive ? 1 : 0,
                    queue.autoDelete ? 1 : 0, table)
            }
        }
        try check("declare queue \(queue.name)")
    }

    /// Starts to consume. Consumer `n` of incoming deliveries is `consumptions[n]`.
    func consume(_ consumptions: [AMQPConsumption]) throws(AMQPError) {
        for (number, consumption) in consumptions.enumerated() {
            if let prefetch = consumption.prefetch {
                amqp_basic_qos(state, Self.mainChannel, 0, prefetch, 0)
                try check("set the prefetch")
            }
            _ = withBytes(consumption.queue, String(number)) { queue, tag in
                amqp_basic_consume(
                    state, Self.mainChannel, queue, tag, 0, consumption.prefetch == nil ? 1 : 0, 0, amqp_empty_table)
            }
            try check("consume from \(consumption.queue)")
        }
    }

    /// Stops to consume. Deliveries that have arrived must still be acknowledged.
    func cancelConsumers(_ numbers: [Int]) throws(AMQPError) {
        for number in numbers {
            _ = withBytes(String(number), "") { tag, _ in amqp_basic_cancel(state, Self.mainChannel, tag) }
            try check("cancel a consumer")
        }
    }

    /// The depth of each queue; missing queues are left out.
    func depths(of queues: [String]) throws(AMQPError) -> [String: AMQPQueueDepth] {
        var depths: [String: AMQPQueueDepth] = [:]
        for queue in queues { depths[queue] = try depth(of: queue) }
        return depths
    }

    /// Declares the queue passively, which creates nothing. From RabbitMQ 4.2.6 on, the user needs a right to the
    /// queue.
    private func depth(of queue: String) throws(AMQPError) -> AMQPQueueDepth? {
        if !isInquiryOpen {
            amqp_channel_open(state, Self.inquiryChannel)
            try check("open a channel")
            isInquiryOpen = true
        }
        let declared = withBytes(queue, "") { name, _ in
            amqp_queue_declare(state, Self.inquiryChannel, name, 1, 0, 0, 0, amqp_empty_table)
        }
        if let declared {
            return AMQPQueueDepth(
                messages: Int(declared.pointee.message_count), consumers: Int(declared.pointee.consumer_count))
        }
        let reply = amqp_get_rpc_reply(state)
        guard reply.reply_type == AMQP_RESPONSE_SERVER_EXCEPTION,
            reply.reply.id == amqp_method_number_t(AMQP_CHANNEL_CLOSE_METHOD)
        else {
            try check(reply, "ask about queue \(queue)")
            throw AMQPError(code: .connection, message: "ask about queue \(queue): no answer")
        }
        isInquiryOpen = false
        let code = reply.reply.decoded.load(as: amqp_channel_close_t.self).reply_code
        var closeOK = amqp_channel_close_ok_t()
        let status = amqp_send_method(
            state, Self.inquiryChannel, amqp_method_number_t(AMQP_CHANNEL_CLOSE_OK_METHOD), &closeOK)
        guard status == AMQP_STATUS_OK.rawValue else {
            throw AMQPError(code: .connection, message: "close a channel: \(Self.text(status))")
        }
        guard code == UInt16(AMQP_NOT_FOUND) else {
            throw AMQPError(code: .refused, message: "ask about queue \(queue): \(Self.text(reply))")
        }
        return nil
    }

    /// Time since the last data of the broker, as the kernel knows it (tcp(7), TCP_INFO). Bytes that the process has
    /// not read yet count as received.
    var silence: Duration {
        var information = tcp_info()
        var length = socklen_t(MemoryLayout<tcp_info>.size)
        guard getsockopt(descriptor, Int32(IPPROTO_TCP), TCP_INFO, &information, &length) == 0 else { return .zero }
        return .milliseconds(information.tcpi_last_data_recv)
    }

    // MARK: Sending

    /// Writes one message.
    ///
    /// - Parameter confirmed: use channel 2.
    func publish(_ body: [UInt8], on route: AMQPRoute, confirmed: Bool) throws(AMQPError) {
        let bytes = routes[route] ?? RouteBytes(route)
        routes[route] = bytes
        var properties = bytes.properties
        let status = body.withUnsafeBytes { body in
            amqp_basic_publish(
                state, confirmed ? Self.confirmChannel : Self.mainChannel, bytes.exchange, bytes.routingKey,
                route.isMandatory ? 1 : 0, 0, &properties,
                amqp_bytes_t(len: body.count, bytes: UnsafeMutableRawPointer(mutating: body.baseAddress)))
        }
        guard status == AMQP_STATUS_OK.rawValue else {
            throw AMQPError(code: .connection, message: "publish: \(Self.text(status))")
        }
        // Reply queues change, so a table with every one of them would only grow.
        if routes.count > 1_000 {
            for route in routes.values { route.free() }
            routes = [:]
        }
    }

    /// Acknowledges or rejects deliveries of this connection.
    func acknowledge(_ frame: SettlementLedger.Frame) throws(AMQPError) {
        let status =
            switch frame.settlement {
            case .accepted: amqp_basic_ack(state, Self.mainChannel, frame.tag, frame.isMultiple ? 1 : 0)
            case .requeued: amqp_basic_reject(state, Self.mainChannel, frame.tag, 1)
            case .rejected: amqp_basic_reject(state, Self.mainChannel, frame.tag, 0)
            }
        guard status == AMQP_STATUS_OK.rawValue else {
            throw AMQPError(code: .connection, message: "acknowledge: \(Self.text(status))")
        }
    }

    /// Holds frames back, or sends those that were held back.
    func holdOutput(_ isHeld: Bool) { TCPOutput.hold(isHeld, of: descriptor) }

    // MARK: Receiving

    /// Reads the next event without waiting; nil when there is none.
    func receive() throws(AMQPError) -> Incoming? {
        amqp_maybe_release_buffers(state)
        while true {
            var envelope = amqp_envelope_t()
            var zero = timeval(tv_sec: 0, tv_usec: 0)
            let reply = amqp_consume_message(state, &envelope, &zero, 0)
            if reply.reply_type == AMQP_RESPONSE_NORMAL {
                defer { amqp_destroy_envelope(&envelope) }
                return incoming(envelope)
            }
            guard reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION else {
                throw AMQPError(code: .connection, message: "the broker closed: \(Self.text(reply))")
            }
            if reply.library_error == AMQP_STATUS_TIMEOUT.rawValue { return nil }
            guard reply.library_error == AMQP_STATUS_UNEXPECTED_STATE.rawValue else {
                throw AMQPError(code: .connection, message: "receive: \(Self.text(reply.library_error))")
            }
            // The next frame is not a delivery.
            var frame = amqp_frame_t()
            let status = amqp_simple_wait_frame_noblock(state, &frame, &zero)
            if status == AMQP_STATUS_TIMEOUT.rawValue { return nil }
            guard status == AMQP_STATUS_OK.rawValue else {
                throw AMQPError(code: .connection, message: "receive: \(Self.text(status))")
            }
            if let incoming = try incoming(frame) { return incoming }
        }
    }

    private func incoming(_ envelope: amqp_envelope_t) -> Incoming {
        let properties = envelope.message.properties
        let hasReplyTo = properties._flags & UInt32(AMQP_BASIC_REPLY_TO_FLAG) != 0
        let delivery = AMQPDelivery(
            body: [UInt8](envelope.message.body), isRedelivered: envelope.redelivered != 0,
            replyTo: hasReplyTo ? String(properties.reply_to) : nil, receivedAt: .now,
            exchange: String(envelope.exchange), generation: generation, deliveryTag: envelope.delivery_tag)
        return .delivery(consumer: Int(String(envelope.consumer_tag)) ?? 0, delivery)
    }

    private func incoming(_ frame: amqp_frame_t) throws(AMQPError) -> Incoming? {
        guard frame.frame_type == UInt8(AMQP_FRAME_METHOD) else { return nil }
        let method = frame.payload.method
        switch method.id {
        case amqp_method_number_t(AMQP_BASIC_ACK_METHOD):
            let ack = method.decoded.load(as: amqp_basic_ack_t.self)
            return .confirmed(ack.delivery_tag, multiple: ack.multiple != 0, isAck: true)
        case amqp_method_number_t(AMQP_BASIC_NACK_METHOD):
            let nack = method.decoded.load(as: amqp_basic_nack_t.self)
            return .confirmed(nack.delivery_tag, multiple: nack.multiple != 0, isAck: false)
        case amqp_method_number_t(AMQP_BASIC_RETURN_METHOD):
            let returned = method.decoded.load(as: amqp_basic_return_t.self)
            let (exchange, routingKey) = (String(returned.exchange), String(returned.routing_key))
            var message = amqp_message_t()
            try check(amqp_read_message(state, frame.channel, &message, 0), "read a returned message")
            defer { amqp_destroy_message(&message) }
            return .returned(exchange: exchange, routingKey: routingKey, body: [UInt8](message.body))
        case amqp_method_number_t(AMQP_CONNECTION_BLOCKED_METHOD): return .blocked(true)
        case amqp_method_number_t(AMQP_CONNECTION_UNBLOCKED_METHOD): return .blocked(false)
        case amqp_method_number_t(AMQP_BASIC_CANCEL_METHOD):
            throw AMQPError(code: .connection, message: "the broker cancelled a consumer: its queue is gone")
        case amqp_method_number_t(AMQP_CHANNEL_CLOSE_METHOD):
            let close = method.decoded.load(as: amqp_channel_close_t.self)
            throw AMQPError(code: .connection, message: "the broker closed a channel: \(String(close.reply_text))")
        case amqp_method_number_t(AMQP_CONNECTION_CLOSE_METHOD):
            let close = method.decoded.load(as: amqp_connection_close_t.self)
            throw AMQPError(code: .connection, message: "the broker closed: \(String(close.reply_text))")
        default:
            return nil
        }
    }

    /// Whether the library holds unread bytes, which the socket does not show.
    ///
    /// TLS keeps none back. One read takes a whole record, because the library's buffer (131,072 bytes) is larger than
    /// a record (16,384), and OpenSSL reads no further from the socket than the record that it decrypts.
    var hasBufferedInput: Bool { amqp_frames_enqueued(state) != 0 || amqp_data_in_buffer(state) != 0 }

    /// Closes the connection in an orderly way.
    func close() { amqp_connection_close(state, AMQP_REPLY_SUCCESS) }

    // MARK: Errors

    /// Throws the broker's error for the last call.
    func check(_ call: String) throws(AMQPError) { try check(amqp_get_rpc_reply(state), call) }

    private func check(_ reply: amqp_rpc_reply_t, _ call: String) throws(AMQPError) {
        guard reply.reply_type != AMQP_RESPONSE_NORMAL else { return }
        throw AMQPError(code: .connection, message: "\(call): \(Self.text(reply))")
    }

    private static func text(_ status: Int32) -> String { String(cString: amqp_error_string2(status)) }

    private static func text(_ reply: amqp_rpc_reply_t) -> String {
        guard reply.reply_type == AMQP_RESPONSE_SERVER_EXCEPTION else { return text(reply.library_error) }
        switch reply.reply.id {
        case amqp_method_number_t(AMQP_CHANNEL_CLOSE_METHOD):
            return String(reply.reply.decoded.load(as: amqp_channel_close_t.self).reply_text)
        case amqp_method_number_t(AMQP_CONNECTION_CLOSE_METHOD):
            return String(reply.reply.decoded.load(as: amqp_connection_close_t.self).reply_text)
        default:
            return "method \(reply.reply.id)"
        }
    }
}

// MARK: - C values

/// Calls the body with two texts in the C library's form.
private func withBytes<Result>(
    _ first: String, _ second: String, _ body: (amqp_bytes_t, amqp_bytes_t) -> Result
) -> Result {
    first.withCString { first in
        second.withCString { second in body(amqp_cstring_bytes(first), amqp_cstring_bytes(second)) }
    }
}

/// The texts of a route in C memory, created once for each route and connection.
private struct RouteBytes {
    let exchange: amqp_bytes_t
    let routingKey: amqp_bytes_t
    let properties: amqp_basic_properties_t

    init(_ route: AMQPRoute) {
        exchange = amqp_cstring_bytes(strdup(route.exchange))
        routingKey = amqp_cstring_bytes(strdup(route.routingKey))
        var properties = amqp_basic_properties_t()
        properties._flags = UInt32(AMQP_BASIC_DELIVERY_MODE_FLAG)
        properties.delivery_mode = route.isPersistent ? 2 : 1
        if let expiration = route.expiration {
            properties._flags |= UInt32(AMQP_BASIC_EXPIRATION_FLAG)
            properties.expiration = amqp_cstring_bytes(strdup(String(expiration.milliseconds)))
        }
        if let replyTo = route.replyTo {
            properties._flags |= UInt32(AMQP_BASIC_REPLY_TO_FLAG)
            properties.reply_to = amqp_cstring_bytes(strdup(replyTo))
        }
        self.properties = properties
    }

    func free() {
        for bytes in [exchange, routingKey, properties.expiration, properties.reply_to] { Glibc.free(bytes.bytes) }
    }
}

/// The arguments of a declaration.
private struct Arguments {
    private var entries: [amqp_table_entry_t] = []

    mutating func add(_ key: String, _ value: Int64) {
        var entry = amqp_table_entry_t()
        entry.key = amqp_cstring_bytes(strdup(key))
        entry.value.kind = UInt8(AMQP_FIELD_KIND_I64.rawValue)
        entry.value.value.i64 = value
        entries.append(entry)
    }

    mutating func add(_ key: String, _ value: String) {
        var entry = amqp_table_entry_t()
        entry.key = amqp_cstring_bytes(strdup(key))
        entry.value.kind = UInt8(AMQP_FIELD_KIND_UTF8.rawValue)
        entry.value.value.bytes = amqp_cstring_bytes(strdup(value))
        entries.append(entry)
    }

    /// Passes the table to the body, then frees it.
    consuming func withTable(_ body: (amqp_table_t) -> Void) {
        entries.withUnsafeMutableBufferPointer { entries in
            body(amqp_table_t(num_entries: Int32(entries.count), entries: entries.baseAddress))
            for entry in entries {
                free(entry.key.bytes)
                if entry.value.kind == UInt8(AMQP_FIELD_KIND_UTF8.rawValue) { free(entry.value.value.bytes.bytes) }
            }
        }
    }
}

extension [UInt8] {
    fileprivate init(_ bytes: amqp_bytes_t) {
        self = Array(UnsafeRawBufferPointer(start: bytes.bytes, count: bytes.len))
    }
}

extension String {
    fileprivate init(_ bytes: amqp_bytes_t) {
        self = String(decoding: UnsafeRawBufferPointer(start: bytes.bytes, count: bytes.len), as: UTF8.self)
    }
}

extension Duration {
    var milliseconds: Int64 { components.seconds * 1_000 + components.attoseconds / 1_000_000_000_000_000 }
}

extension timeval {
    fileprivate init(_ duration: Duration) {
        let (seconds, attoseconds) = duration.components
        self.init(tv_sec: Int(seconds), tv_usec: Int(attoseconds / 1_000_000_000_000))
    }
}
