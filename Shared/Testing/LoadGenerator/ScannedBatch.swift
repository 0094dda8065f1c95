/// One channel's batch in a push frame. Ranges refer to the scanned bytes.
struct ScannedBatch: Hashable, Sendable {
    /// `ChannelKind` of the protocol.
    var kind: UInt64 = 0
    var bizType = 0..<0
    var bindNumber: UInt64 = 0
    var after: Int64 = 0
    var upto: Int64 = 0
    /// Range of the whole batch, for `eachEntry`.
    var content = 0..<0

    /// Passes the batches of a push frame to `body`, in order.
    ///
    /// - Parameter push: the value of `ScannedFrame.push`.
    /// - Returns: false if the frame is malformed. Earlier batches were passed.
    static func each(
        _ bytes: UnsafeRawBufferPointer, in push: Range<Int>, _ body: (ScannedBatch) -> Void
    ) -> Bool {
        var reader = WireReader(bytes, in: push)
        while let field = reader.next() {
            guard field.number == 1 else { continue }
            // Fields can come in any order, so the scalars are read first and the entries later.
            var batch = ScannedBatch(content: field.content)
            var fields = WireReader(bytes, in: field.content)
            while let field = fields.next() {
                switch field.number {
                case 1: batch.kind = field.integer
                case 2: batch.bizType = field.content
                case 3: batch.bindNumber = field.integer
                case 4: batch.after = Int64(bitPattern: field.integer)
                case 5: batch.upto = Int64(bitPattern: field.integer)
                default: break
                }
            }
            if fields.isMalformed { return false }
            body(batch)
        }
        return !reader.isMalformed
    }

    /// Passes the id and the payload range of each entry to `body`, in order.
    ///
    /// - Returns: false if an entry is malformed. Earlier entries were passed.
    func eachEntry(_ bytes: UnsafeRawBufferPointer, _ body: (Int64, Range<Int>) -> Void) -> Bool {
        var reader = WireReader(bytes, in: content)
        while let field = reader.next() {
            guard field.number == 6 else { continue }
            var (oplogID, payload): (Int64, Range<Int>) = (0, 0..<0)
            var fields = WireReader(bytes, in: field.content)
            while let field = fields.next() {
                if field.number == 1 { oplogID = Int64(bitPattern: field.integer) }
                if field.number == 2 { payload = field.content }
            }
            if fields.isMalformed { return false }
            body(oplogID, payload)
        }
        return true
    }
}
