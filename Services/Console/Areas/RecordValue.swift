/// A value of a record's JSON.
enum RecordValue: Decodable, Hashable, Sendable {
    case nothing
    case flag(Bool)
    case whole(Int64)
    case number(Double)
    case text(String)
    case list([RecordValue])
    case object([String: RecordValue])

    init(from decoder: any Decoder) throws {
        let value = try decoder.singleValueContainer()
        if value.decodeNil() {
            self = .nothing
        } else if let flag = try? value.decode(Bool.self) {
            self = .flag(flag)
        } else if let whole = try? value.decode(Int64.self) {
            self = .whole(whole)
        } else if let number = try? value.decode(Double.self) {
            self = .number(number)
        } else if let text = try? value.decode(String.self) {
            self = .text(text)
        } else if let list = try? value.decode([RecordValue].self) {
            self = .list(list)
        } else {
            self = .object(try value.decode([String: RecordValue].self))
        }
    }

    /// The whole number that it is.
    var whole: Int64? {
        guard case .whole(let number) = self else { return nil }
        return number
    }
}
