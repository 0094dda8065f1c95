/// A record in an AMQP body of the bare chain.
///
/// A body is a sequence of records of one kind, so two concatenated bodies are one body with the records of both, as
/// the AMQP driver requires. Integers have eight bytes, most significant first. Texts and payloads follow a length of
/// four bytes.
protocol ChainRecord: Sendable {
    /// Reads the next record. Returns nil if the bytes end within it.
    init?(_ reader: inout RecordReader)

    /// Appends the record to a body.
    func write(into body: inout [UInt8])
}

extension ChainRecord {
    /// The record as a body of its own.
    var body: [UInt8] {
        var body: [UInt8] = []
        write(into: &body)
        return body
    }

    /// All records of a body. The value is nil if the body ends within a record.
    static func all(in body: [UInt8]) -> [Self]? {
        var (reader, records) = (RecordReader(body), [Self]())
        while !reader.isAtEnd {
            guard let record = Self(&reader) else { return nil }
            records.append(record)
        }
        return records
    }
}

/// A push, from the ingest to the writer.
struct PushRecord: ChainRecord, Hashable {
    /// Number of the call, for the reply.
    let correlation: UInt64
    let user: String
    let thirdMessageID: String
    let payload: [UInt8]

    init(correlation: UInt64, user: String, thirdMessageID: String, payload: [UInt8]) {
        self.correlation = correlation
        self.user = user
        self.thirdMessageID = thirdMessageID
        self.payload = payload
    }

    init?(_ reader: inout RecordReader) {
        guard let correlation = reader.integer(), let user = reader.field(), let thirdMessageID = reader.field(),
            let payload = reader.field()
        else { return nil }
        self.init(
            correlation: correlation, user: String(decoding: user, as: UTF8.self),
            thirdMessageID: String(decoding: thirdMessageID, as: UTF8.self), payload: Array(payload))
    }

    func write(into body: inout [UInt8]) {
        body.reserveCapacity(body.count + 20 + user.utf8.count + thirdMessageID.utf8.count + payload.count)
        body.append(integer: correlation)
        body.append(field: user.utf8)
        body.append(field: thirdMessageID.utf8)
        body.append(field: payload)
    }
}

/// The outcome of a push, from the writer to the ingest.
struct StoredRecord: ChainRecord, Hashable {
    /// Number of the call.
    let correlation: UInt64
    /// 0 if the push was not stored.
    let oplogID: Int64

    init(correlation: UInt64, oplogID: Int64) {
        self.correlation = correlation
        self.oplogID = oplogID
    }

    init?(_ reader: inout RecordReader) {
        guard let correlation = reader.integer(), let oplogID = reader.integer() else { return nil }
        self.init(correlation: correlation, oplogID: Int64(bitPattern: oplogID))
    }

    func write(into body: inout [UInt8]) {
        body.append(integer: correlation)
        body.append(integer: UInt64(bitPattern: oplogID))
    }
}

/// A stored push, from the writer to the gateway.
struct NoticeRecord: ChainRecord, Hashable {
    let user: String
    /// The user's previous oplog id is one less, because the writer numbers the pushes of each user from 1.
    let oplogID: Int64
    let payload: [UInt8]

    init(user: String, oplogID: Int64, payload: [UInt8]) {
        self.user = user
        self.oplogID = oplogID
        self.payload = payload
    }

    init?(_ reader: inout RecordReader) {
        guard let user = reader.field(), let oplogID = reader.integer(), let payload = reader.field() else {
            return nil
        }
        self.init(
            user: String(decoding: user, as: UTF8.self), oplogID: Int64(bitPattern: oplogID), payload: Array(payload))
    }

    func write(into body: inout [UInt8]) {
        body.reserveCapacity(body.count + 16 + user.utf8.count + payload.count)
        body.append(field: user.utf8)
        body.append(integer: UInt64(bitPattern: oplogID))
        body.append(field: payload)
    }
}

/// Reads the fields of records in their order.
struct RecordReader {
    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Whether all bytes were read.
    var isAtEnd: Bool { position == bytes.count }

    /// The next integer. The value is nil if too few bytes are left.
    mutating func integer() -> UInt64? { number(bytes: 8) }

    /// The next text or payload. The value is nil if too few bytes are left.
    mutating func field() -> ArraySlice<UInt8>? {
        guard let length = number(bytes: 4), length <= UInt64(bytes.count - position) else { return nil }
        defer { position += Int(length) }
        return bytes[position..<(position + Int(length))]
    }

    private mutating func number(bytes count: Int) -> UInt64? {
        guard bytes.count - position >= count else { return nil }
        defer { position += count }
        return bytes[position..<(position + count)].reduce(0) { $0 << 8 | UInt64($1) }
    }
}

extension [UInt8] {
    fileprivate mutating func append(integer: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: integer.bigEndian) { append(contentsOf: $0) }
    }

    fileprivate mutating func append(field: some Collection<UInt8>) {
        append(integer: UInt32(field.count))
        append(contentsOf: field)
    }
}
