/// One channel's batch within a push frame; ranges lie within the bytes that were scanned.
struct ScannedBatch: Hashable, Sendable {
    /// `ChannelKind` of the wire.
    var kind: UInt64 = 0
    var bizType = 0..<0
    var bindNumber: UInt64 = 0
    var after: Int64 = 0
    var upto: Int64 = 0
    /// The whole batch, for `eachEntry`.
    var content = 0..<0

    /// Gives the batches of a push frame in their order.
    ///
    /// - Parameter push: what `ScannedFrame.push` carries.
    /// - Returns: false when the frame is malformed; what came before was given.
    static func each(
        _ bytes: UnsafeRawBufferPointer, in push: Range<Int>, _ body: (ScannedBatch) -> Void
    ) -> Bool {
        var reader = WireReader(bytes, in: push)
        while let field = reader.next() {
            guard field.number == 1 else { continue }
            // Fields come in any order: the scalars first, the entries when they are asked for.
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

    /// Gives the batch's entries in their order: the oplog id, and where the payload lies.
    ///
    /// - Returns: false when an entry is malformed; what came before was given.
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
