import NIOCore

/// Assigns due calls to the connections of a load run. Each connection has one call at a time.
struct LoadCallQueue {
    /// Connections to the API without a call in flight. They are used in turn: the server closes a connection that
    /// stays idle, and a call that it meets then has no response.
    private var idleCallers = CircularBuffer<LoadCaller>()
    /// Due calls that wait for a connection.
    private var waiting = CircularBuffer<(stream: Int, due: Int64)>()

    /// Whether no call waits for a connection.
    var isEmpty: Bool { waiting.isEmpty }

    /// Selects a connection for a due call of a stream.
    ///
    /// - Returns: nil if every connection has a call in flight. Then the call waits.
    mutating func caller(for stream: Int, due: Int64) -> LoadCaller? {
        if let caller = idleCallers.popFirst() { return caller }
        waiting.append((stream, due))
        return nil
    }

    /// Selects the call that has waited longest, for a connection without a call in flight.
    ///
    /// - Returns: nil if no call waits. Then the connection becomes idle.
    mutating func call(for caller: LoadCaller) -> (stream: Int, due: Int64)? {
        if let next = waiting.popFirst() { return next }
        idleCallers.append(caller)
        return nil
    }

    /// Removes a connection that has ended.
    mutating func remove(_ caller: LoadCaller) { idleCallers.removeAll { $0 === caller } }
}
