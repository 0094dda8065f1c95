import CLibPQ
import ConnectionThread
import Glibc
package import Logging

/// One connection to the server. It belongs to one actor on a ConnectionThread. A call blocks that thread, but no
/// longer than its limit.
///
/// It connects on demand. It never repeats a statement by itself, because only the caller knows whether that is safe.
package final class PostgresConnection {
    /// Prepares a new connection, or refuses the server.
    package typealias Prepare = (PostgresConnection) throws(PostgresError) -> Void

    /// With several servers, a connection tries the next one when a machine does not answer the TCP handshake for this
    /// time.
    /// The kernel repeats a lost SYN after a second. A server that has answered may be busy and is waited for.
    private static let handshakeTimeout = Duration.seconds(1)

    private let configuration: PostgresConfiguration
    private let logger: Logger
    private let onConnect: Prepare
    private var handle: OpaquePointer?
    /// The index of the address with which the next attempt to connect begins: the last one that was connected, or the
    /// one after an address that used up the time of an attempt.
    private var addressIndex = 0
    private let warning = Warning()
    /// Names of statements prepared on this connection, by their SQL.
    private var prepared: [String: String] = [:]

    /// - Parameter onConnect: runs first on each new connection. If it throws, the connection is closed and the
    ///   caller's call fails.
    package init(
        configuration: PostgresConfiguration, logger: Logger, onConnect: @escaping Prepare = { _ in }
    ) {
        self.configuration = configuration
        self.logger = logger
        self.onConnect = onConnect
    }

    deinit { PQfinish(handle) }

    /// Closes the connection; the next call opens a new one.
    package func close() {
        PQfinish(handle)
        handle = nil
        prepared = [:]
    }

    /// Runs statements in one round trip. Each starts after the previous one has ended, and has its own result. Each is
    /// a transaction of its own, except between BEGIN and COMMIT.
    ///
    /// - Throws: only when the connection fails: `.unavailable` if nothing was sent, otherwise `.outcomeUnknown` for
    ///   all statements.
    package func run(
        _ statements: [PostgresStatement], within limit: Duration
    ) throws(PostgresError) -> [Result<PostgresRows, PostgresError>] {
        guard !statements.isEmpty else { return [] }
        let deadline = ContinuousClock.now + limit
        try ensureConnected(until: min(deadline, .now + configuration.connectTimeout))
        for statement in statements where prepared[statement.sql] == nil {
            try prepare(statement, until: deadline)
        }
        do throws(PostgresError) {
            // One TCP segment for all: each one costs a system call and a wake-up of the server.
            if statements.count > 1 { TCPOutput.hold(true, of: PQsocket(handle)) }
            for statement in statements { try send(statement) }
            if statements.count > 1 { TCPOutput.hold(false, of: PQsocket(handle)) }
            var results: [Result<PostgresRows, PostgresError>] = []
            for _ in statements { results.append(try receive(until: deadline)) }
            return results
        } catch {
            close()
            throw error
        }
    }

    /// Runs one statement.
    package func run(
        _ statement: PostgresStatement, within limit: Duration
    ) throws(PostgresError) -> PostgresRows {
        try run([statement], within: limit)[0].get()
    }

    /// Runs a script of several commands without parameters, for migrations and session settings. It stops at the first
    /// error.
    package func execute(script: String, within limit: Duration) throws(PostgresError) {
        let deadline = ContinuousClock.now + limit
        try ensureConnected(until: deadline)
        guard PQexitPipelineMode(handle) == 1, PQsendQuery(handle, script) == 1 else { throw lost("not sent") }
        var failure: PostgresError?
        do throws(PostgresError) {
            try flush(until: deadline)
            while let result = try next(until: deadline) {
                if PQresultStatus(result) == PGRES_FATAL_ERROR, failure == nil { failure = Self.refusal(in: result) }
                PQclear(result)
            }
        } catch {
            close()
            throw error
        }
        guard PQenterPipelineMode(handle) == 1 else { throw lost("pipeline mode") }
        // Warnings of a script are not errors.
        _ = warning.removeText()
        if let failure { throw failure }
    }

    /// The SCRAM-SHA-256 verifier of a password, which the server stores. It is computed here, so neither the server
    /// nor its log sees the password.
    package func verifier(
        of password: String, for user: String, within limit: Duration
    ) throws(PostgresError) -> String {
        try ensureConnected(until: ContinuousClock.now + limit)
        guard let text = PQencryptPasswordConn(handle, password, user, "scram-sha-256") else {
            throw PostgresError(code: .misuse, message: "the password cannot be used: \(detail)", mayRetry: false)
        }
        defer { PQfreemem(text) }
        return String(cString: text)
    }

    // MARK: Connecting

    private func ensureConnected(until deadline: ContinuousClock.Instant) throws(PostgresError) {
        if handle != nil, isStale { close() }
        if handle == nil { try connect(until: deadline) }
    }

    /// Whether the server has closed the idle connection: its last message and an end of file wait on the socket.
    private var isStale: Bool {
        var descriptor = pollfd(fd: PQsocket(handle), events: Int16(POLLIN), revents: 0)
        while poll(&descriptor, 1, 0) > 0 {
            if PQconsumeInput(handle) == 0 || PQstatus(handle) != CONNECTION_OK { return true }
        }
        return false
    }

    /// Tries the addresses in turn, each once.
    private func connect(until deadline: ContinuousClock.Instant) throws(PostgresError) {
        var failures: [String] = []
        for _ in configuration.addresses where failures.isEmpty || .now < deadline {
            let address = configuration.addresses[addressIndex]
            do throws(PostgresError) {
                try open(address, until: deadline)
            } catch {
                close()
                failures.append("\(address): \(error.message)")
                addressIndex = (addressIndex + 1) % configuration.addresses.count
                continue
            }
            do throws(PostgresError) {
                try onConnect(self)
            } catch {
                close()
                addressIndex = (addressIndex + 1) % configuration.addresses.count
                throw error
            }
            return logger.info(
                "connected to PostgreSQL", metadata: ["host": "\(address.host)", "port": "\(address.port)"])
        }
        throw PostgresError(code: .unavailable, message: failures.joined(separator: "; "), mayRetry: true)
    }

    /// Opens a connection to one server.
    private func open(_ address: ServerAddress, until deadline: ContinuousClock.Instant) throws(PostgresError) {
        let parameters = configuration.parameters(for: address)
        var keywords = parameters.map { strdup($0.0) } + [nil]
        var values = parameters.map { strdup($0.1) } + [nil]
        defer { for pointer in keywords + values { free(pointer) } }
        handle = keywords.withUnsafeMutableBufferPointer { keywords in
            values.withUnsafeMutableBufferPointer { values in
                keywords.withMemoryRebound(to: UnsafePointer<CChar>?.self) { keywords in
                    values.withMemoryRebound(to: UnsafePointer<CChar>?.self) { values in
                        PQconnectStartParams(keywords.baseAddress, values.baseAddress, 0)
                    }
                }
            }
        }
        try finishConnecting(until: deadline)
        _ = PQsetNoticeReceiver(handle, { Warning.record($0, $1) }, Unmanaged.passUnretained(warning).toOpaque())
        // The lines of SQL functions that an error passed through say nothing to an operator.
        PQsetErrorContextVisibility(handle, PQSHOW_CONTEXT_NEVER)
        guard PQsetnonblocking(handle, 1) == 0, PQenterPipelineMode(handle) == 1 else {
            throw unavailable("pipeline mode")
        }
    }

    private func finishConnecting(until deadline: ContinuousClock.Instant) throws(PostgresError) {
        guard handle != nil, PQstatus(handle) != CONNECTION_BAD else { throw unavailable("the server is not reached") }
        let handshakeEnd = configuration.addresses.count == 1 ? deadline : min(deadline, .now + Self.handshakeTimeout)
        var events = Int16(POLLOUT)
        while true {
            let end = PQstatus(handle) == CONNECTION_STARTED ? handshakeEnd : deadline
            guard wait(for: events, until: end) else { throw unavailable("no connection in time") }
            switch PQconnectPoll(handle) {
            case PGRES_POLLING_READING: events = Int16(POLLIN)
            case PGRES_POLLING_WRITING: events = Int16(POLLOUT)
            case PGRES_POLLING_OK: return
            default: throw unavailable("the server is not reached")
            }
        }
    }

    // MARK: Statements

    private func prepare(_ statement: PostgresStatement, until deadline: ContinuousClock.Instant) throws(PostgresError)
    {
        let name = "s\(prepared.count + 1)"
        let types = statement.parameters.map(\.typeID)
        guard PQsendPrepare(handle, name, statement.sql, Int32(types.count), types) == 1, PQpipelineSync(handle) == 1
        else {
            defer { close() }
            throw unavailable("not sent")
        }
        do throws(PostgresError) {
            _ = try receive(until: deadline).get()
        } catch {
            if case .server = error.code { throw error }
            close()
            throw PostgresError(code: .unavailable, message: error.message, mayRetry: true)
        }
        prepared[statement.sql] = name
    }

    private func send(_ statement: PostgresStatement) throws(PostgresError) {
        let encoded = statement.parameters.map(\.encoded)
        let flat = encoded.flatMap { $0 ?? [] }
        let formats = [Int32](repeating: 1, count: encoded.count)
        let lengths = encoded.map { Int32($0?.count ?? 0) }
        let isSent = flat.withUnsafeBufferPointer { buffer in
            // An empty value still needs a pointer that is not nil; nil means SQL null.
            let base = UnsafeRawPointer(buffer.baseAddress ?? UnsafePointer(Self.emptyValue))
                .assumingMemoryBound(to: CChar.self)
            var offset = 0
            let values = encoded.map { bytes -> UnsafePointer<CChar>? in
                guard let bytes else { return nil }
                defer { offset += bytes.count }
                return base + offset
            }
            return PQsendQueryPrepared(
                handle, prepared[statement.sql], Int32(values.count), values, lengths, formats, 1) == 1
        }
        guard isSent, PQpipelineSync(handle) == 1 else { throw lost("not sent") }
    }

    // Immutable after its initialization; only its address is used.
    private nonisolated(unsafe) static let emptyValue = UnsafeMutablePointer<UInt8>.allocate(capacity: 1)

    /// Reads the results of one statement up to its synchronization point.
    private func receive(
        until deadline: ContinuousClock.Instant
    ) throws(PostgresError) -> Result<PostgresRows, PostgresError> {
        var outcome: Result<PostgresRows, PostgresError>?
        while true {
            // In pipeline mode a nil ends the results of one command; the synchronization point follows as a separate
            // result.
            guard let result = try next(until: deadline) else { continue }
            switch PQresultStatus(result) {
            case PGRES_PIPELINE_SYNC:
                PQclear(result)
                if let text = warning.removeText() {
                    return .failure(PostgresError(code: .outcomeUnknown, message: text, mayRetry: true))
                }
                return outcome ?? .failure(lost("no result"))
            case PGRES_TUPLES_OK, PGRES_COMMAND_OK:
                outcome = .success(PostgresRows(result))
            default:
                if outcome == nil { outcome = .failure(Self.refusal(in: result)) }
                PQclear(result)
            }
        }
    }

    private func next(until deadline: ContinuousClock.Instant) throws(PostgresError) -> OpaquePointer? {
        try flush(until: deadline)
        while PQisBusy(handle) == 1 {
            guard wait(for: Int16(POLLIN), until: deadline) else { throw lost("no reply in time") }
            guard PQconsumeInput(handle) == 1 else { throw lost("the connection was lost") }
        }
        let result = PQgetResult(handle)
        if result == nil, PQstatus(handle) != CONNECTION_OK { throw lost("the connection was lost") }
        return result
    }

    private func flush(until deadline: ContinuousClock.Instant) throws(PostgresError) {
        while true {
            switch PQflush(handle) {
            case 0: return
            case 1:
                guard wait(for: Int16(POLLIN | POLLOUT), until: deadline) else { throw lost("not sent in time") }
                guard PQconsumeInput(handle) == 1 else { throw lost("the connection was lost") }
            default: throw lost("the connection was lost")
            }
        }
    }

    private func wait(for events: Int16, until deadline: ContinuousClock.Instant) -> Bool {
        while true {
            let left = ContinuousClock.now.duration(to: deadline)
            guard left > .zero else { return false }
            var descriptor = pollfd(fd: PQsocket(handle), events: events, revents: 0)
            let milliseconds = left.components.seconds * 1_000 + left.components.attoseconds / 1_000_000_000_000_000 + 1
            let ready = poll(&descriptor, 1, Int32(clamping: milliseconds))
            if ready > 0 { return true }
            if ready < 0, errno != EINTR { return false }
        }
    }

    // MARK: Errors

    /// The server's last warning. Our statements raise none, so a warning means that a statement did less than
    /// requested. Example: a cancelled wait for the standby ends in a local commit with a warning and a result that
    /// looks like success.
    private final class Warning {
        private var text: String?

        func removeText() -> String? {
            defer { text = nil }
            return text
        }

        /// libpq's notice receiver. It runs inside of calls that read, on the connection's thread.
        static func record(_ context: UnsafeMutableRawPointer?, _ notice: OpaquePointer?) {
            guard let context, let severity = mss_pg_result_severity(notice), String(cString: severity) == "WARNING"
            else { return }
            let text = PQresultErrorMessage(notice).map { String(cString: $0) } ?? ""
            Unmanaged<Warning>.fromOpaque(context).takeUnretainedValue().text = text.trimmingSuffix(
                while: \.isWhitespace)
        }
    }

    private var detail: String {
        guard let handle, let text = PQerrorMessage(handle) else { return "" }
        return String(cString: text).trimmingSuffix(while: \.isWhitespace)
    }

    /// The cause, with libpq's description if it has one.
    private func message(_ cause: String) -> String {
        let detail = detail
        return detail.isEmpty ? cause : "\(cause): \(detail)"
    }

    private func unavailable(_ cause: String) -> PostgresError {
        PostgresError(code: .unavailable, message: message(cause), mayRetry: true)
    }

    private func lost(_ cause: String) -> PostgresError {
        PostgresError(code: .outcomeUnknown, message: message(cause), mayRetry: true)
    }

    private static func refusal(in result: OpaquePointer) -> PostgresError {
        let sqlState = mss_pg_result_sqlstate(result).map { String(cString: $0) } ?? ""
        let message = PQresultErrorMessage(result).map { String(cString: $0).trimmingSuffix(while: \.isWhitespace) }
        // Class 08 and 57P: the server shuts down, and the outcome of a commit in progress is unknown.
        if sqlState.isEmpty || sqlState.hasPrefix("08") || sqlState.hasPrefix("57P") {
            return PostgresError(code: .outcomeUnknown, message: message ?? "", mayRetry: true)
        }
        // Rolled back by a deadlock or another transaction (class 40), out of a resource (class 53), lock not
        // available, or cancelled: a retry can succeed.
        let mayRetry = ["40", "53"].contains(sqlState.prefix(2)) || ["55P03", "57014"].contains(sqlState)
        return PostgresError(code: .server(sqlState: sqlState), message: message ?? "", mayRetry: mayRetry)
    }
}

extension String {
    fileprivate func trimmingSuffix(while predicate: (Character) -> Bool) -> String {
        var end = endIndex
        while end > startIndex, predicate(self[index(before: end)]) { end = index(before: end) }
        return String(self[..<end])
    }
}

/// One SQL command with its parameters. It is prepared once for each connection, at its first use.
package struct PostgresStatement: Sendable {
    /// A constant of the program; values are only passed as parameters `$1`, `$2`, ….
    package let sql: String
    package let parameters: [PostgresValue]

    package init(_ sql: String, _ parameters: [PostgresValue] = []) {
        self.sql = sql
        self.parameters = parameters
    }
}
