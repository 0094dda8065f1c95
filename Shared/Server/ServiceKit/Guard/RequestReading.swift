import NIOCore

/// The reading of the requests of one HTTP connection, one at a time; pure.
struct RequestReading {
    /// The part of a request that is being read.
    enum Part {
        case nothing
        case head
        case body
    }

    private(set) var part = Part.nothing
    /// Whether the request line of the current head is complete.
    private(set) var hasRequestLine = false
    /// Bytes since the end of the head, with chunk headers and trailers.
    private var arrivedBytes = 0
    /// Bytes of the body itself.
    private var bodyBytes = 0
    /// Whether a request has ended since the last read-ahead.
    private var mayReadAhead = false

    /// Records that a head begins with the next bytes.
    mutating func headBegan() {
        part = .head
        hasRequestLine = false
    }

    /// Records received bytes before they are decoded.
    ///
    /// - Parameter overheadMax: the bytes around the body that every request may have.
    /// - Returns: whether the request has too many other bytes than its body. The decoder does not limit chunk
    ///   extensions, leading zeros and similar overhead.
    mutating func bytesArrived(_ bytes: ByteBuffer, overheadMax: Int) -> Bool {
        switch part {
        case .nothing: return false
        case .head:
            if !hasRequestLine { hasRequestLine = bytes.readableBytesView.contains(UInt8(ascii: "\n")) }
            return false
        case .body:
            // These bytes are not decoded yet, so they do not count.
            defer { arrivedBytes += bytes.readableBytes }
            return arrivedBytes > overheadMax + 16 * bodyBytes
        }
    }

    /// Records that the head is complete.
    mutating func bodyBegan() {
        part = .body
        (arrivedBytes, bodyBytes) = (0, 0)
    }

    /// Records decoded bytes of the body.
    mutating func bodyArrived(_ bytes: Int) { bodyBytes += bytes }

    /// Records that the request is complete.
    mutating func requestEnded() {
        part = .nothing
        mayReadAhead = true
    }

    /// Returns whether a request is complete and the next one was not begun. True once for each request.
    mutating func dequeueReadAhead() -> Bool {
        defer { mayReadAhead = false }
        return mayReadAhead && part == .nothing
    }
}
