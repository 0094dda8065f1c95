/// HTTP header fields. Names are compared without regard to case.
public struct ResourceHeaders: Sendable, Hashable, Codable, ExpressibleByDictionaryLiteral {
    /// The fields that the library sets, in lower case; a request cannot have its own.
    private static let reserved: Set<String> = [
        "accept-encoding", "connection", "content-length", "content-range", "content-type", "host", "idempotency-key",
        "if-match", "if-none-match", "if-range", "range", "transfer-encoding", "upload-complete", "upload-length",
        "upload-offset",
    ]
    /// The largest total size of the fields of one request, in bytes.
    static let maxBytes = 4_000

    /// The fields in the order of the message.
    public private(set) var fields: [Field] = []

    /// One field.
    public struct Field: Sendable, Hashable, Codable {
        public let name: String
        public let value: String
    }

    /// Makes an empty set of fields.
    public init() {}

    /// Makes fields from a dictionary literal, in its order.
    public init(dictionaryLiteral elements: (String, String)...) {
        fields = elements.map { Field(name: $0.0, value: $0.1) }
    }

    /// Adds a field; fields of the same name stay.
    public mutating func add(_ name: String, _ value: String) { fields.append(Field(name: name, value: value)) }

    /// The value of the first field with this name; nil when there is none.
    public subscript(_ name: String) -> String? {
        fields.first { $0.name.lowercased() == name.lowercased() }?.value
    }

    /// Adds the fields of a request, which replace fields of the same name.
    mutating func merge(_ others: ResourceHeaders) {
        let names = Set(others.fields.map { $0.name.lowercased() })
        fields = fields.filter { !names.contains($0.name.lowercased()) } + others.fields
    }

    /// Checks the fields of a request.
    ///
    /// - Throws: `ResourceError.invalidArgument` for a field that the library sets, a name or value that HTTP does not
    ///   allow, and more than 4,000 bytes.
    func check() throws(ResourceError) {
        let symbols = Set("!#$%&'*+-.^_`|~0123456789".utf8)
        for field in fields {
            let isName = field.name.utf8.allSatisfy { byte in
                symbols.contains(byte) || UnicodeScalar(byte).properties.isAlphabetic && byte < 128
            }
            guard isName, !field.name.isEmpty,
                field.value.utf8.allSatisfy({ (32..<127).contains($0) || $0 == 9 })
            else {
                throw ResourceError(
                    .invalidArgument,
                    "the header field \(field.name) must have a name of letters, digits and hyphens, and a value of "
                        + "printable ASCII characters")
            }
            guard !Self.reserved.contains(field.name.lowercased()) else {
                throw ResourceError(
                    .invalidArgument, "the library sets the header field \(field.name); leave it out of headers")
            }
        }
        guard fields.reduce(0, { $0 + $1.name.utf8.count + $1.value.utf8.count }) <= Self.maxBytes else {
            throw ResourceError(.invalidArgument, "the header fields have more than \(Self.maxBytes) bytes together")
        }
    }
}
