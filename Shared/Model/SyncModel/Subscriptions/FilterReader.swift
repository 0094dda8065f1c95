/// Reads filters, declarations and values. It recurses no deeper than `Limits.filterDepth`, so no input exhausts the
/// stack.
struct FilterReader {
    private let scalars: [Unicode.Scalar]
    private var position = 0
    /// The positions of the operands, in reading order.
    private(set) var operandPositions: [Int] = []

    init(_ text: String) { scalars = Array(text.unicodeScalars) }

    var isAtEnd: Bool { position == scalars.count }

    private static let words: Set<String> = ["and", "or", "not", "in", "startsWith", "true", "false"]

    func fault(_ reason: String, at place: Int? = nil) -> SubscriptionFault {
        SubscriptionFault(at: (place ?? position) + 1, reason)
    }

    // MARK: Expressions

    mutating func filter(depth: Int = 1) throws(SubscriptionFault) -> SubscriptionFilter {
        var left = try conjunction(depth: depth)
        while consumeWord("or") { left = .or(left, try conjunction(depth: depth)) }
        return left
    }

    private mutating func conjunction(depth: Int) throws(SubscriptionFault) -> SubscriptionFilter {
        var left = try condition(depth: depth)
        while consumeWord("and") { left = .and(left, try condition(depth: depth)) }
        return left
    }

    private mutating func condition(depth: Int) throws(SubscriptionFault) -> SubscriptionFilter {
        guard depth <= Limits.filterDepth else { throw fault("a filter nests at most \(Limits.filterDepth) deep") }
        if consumeWord("not") { return .not(try condition(depth: depth + 1)) }
        if consume("(") {
            let inner = try filter(depth: depth + 1)
            try expect(")")
            return inner
        }
        let left = try operand()
        if consumeWord("in") { return .isOneOf(left, try list()) }
        if consumeWord("startsWith") { return .compare(left, .startsWith, try operand()) }
        // The longer operators first, because < is a prefix of <=.
        for comparison in ["==", "!=", "<=", ">=", "<", ">"] {
            guard consume(comparison), let found = SubscriptionFilter.Comparison(rawValue: comparison) else { continue }
            return .compare(left, found, try operand())
        }
        skipSpace()
        throw fault("one of == != < <= > >= in startsWith is missing")
    }

    private mutating func list() throws(SubscriptionFault) -> [SubscriptionFilter.Operand] {
        try expect("(")
        var list = [try operand()]
        while consume(",") { list.append(try operand()) }
        try expect(")")
        return list
    }

    private mutating func operand() throws(SubscriptionFault) -> SubscriptionFilter.Operand {
        skipSpace()
        operandPositions.append(position)
        if consume("$") { return .parameter(try name("a parameter")) }
        let start = position
        if let word = word(), !["true", "false"].contains(word) {
            position = start
            return .attribute(try name("an attribute"))
        }
        position = start
        return .literal(try value())
    }

    // MARK: Declarations

    /// Reads `name type, name type`. A parameter may have ` = value` after the type.
    mutating func declarations(
        _ what: String, withDefaults: Bool
    ) throws(SubscriptionFault) -> [String: SubscriptionRules.Declaration] {
        var found: [String: SubscriptionRules.Declaration] = [:]
        skipSpace()
        if isAtEnd { return found }
        repeat {
            skipSpace()
            let start = position
            let name = try name(what)
            guard found[name] == nil else { throw fault("\(name) is declared twice", at: start) }
            skipSpace()
            let typeStart = position
            guard let type = word().flatMap(SubscriptionType.init(rawValue:)) else {
                throw fault("behind \(name) stands its type: text, number or boolean", at: typeStart)
            }
            var declaration = SubscriptionRules.Declaration(type: type)
            if withDefaults, consume("=") {
                skipSpace()
                let valueStart = position
                let value = try value()
                guard value.type == type, value.isStorable else {
                    throw fault("the default of \(name) is not a \(type.rawValue) that can be kept", at: valueStart)
                }
                declaration.defaultValue = value
            }
            found[name] = declaration
            guard found.count <= Limits.subscriptionNames else {
                throw fault("at most \(Limits.subscriptionNames) names can be declared", at: start)
            }
        } while consume(",")
        try expectEnd()
        return found
    }

    // MARK: Values

    /// Reads a JSON object of values.
    mutating func values() throws(SubscriptionFault) -> [String: SubscriptionValue] {
        var found: [String: SubscriptionValue] = [:]
        try expect("{")
        if consume("}") { return found }
        repeat {
            skipSpace()
            let name = try string()
            try expect(":")
            found[name] = try value()
        } while consume(",")
        try expect("}")
        return found
    }

    /// Reads a string, a number, true or false.
    mutating func value() throws(SubscriptionFault) -> SubscriptionValue {
        skipSpace()
        let start = position
        if peek == "\"" { return .text(try string()) }
        if let word = word() {
            if word == "true" { return .boolean(true) }
            if word == "false" { return .boolean(false) }
            throw fault("a text, a number, true or false is missing", at: start)
        }
        while let next = peek, "+-.eE0123456789".unicodeScalars.contains(next) { position += 1 }
        var text = ""
        text.unicodeScalars.append(contentsOf: scalars[start..<position])
        let digits = text.unicodeScalars.drop { $0 == "-" }
        guard let first = digits.first, let last = digits.last, Self.isDigit(first), Self.isDigit(last),
            let number = Double(text), number.isFinite
        else { throw fault("a text in double quotes, a number, true or false is missing", at: start) }
        return .number(number == 0 ? 0 : number)
    }

    /// Reads a JSON string.
    private mutating func string() throws(SubscriptionFault) -> String {
        let start = position
        guard peek == "\"" else { throw fault("a text in double quotes is missing") }
        position += 1
        var text = String.UnicodeScalarView()
        while let next = peek, next != "\"" {
            position += 1
            if next.value < 0x20 { throw fault("a control character is to be written as an escape", at: position - 1) }
            text.append(next == "\\" ? try escape() : next)
        }
        guard peek != nil else { throw fault("the text that begins here has no end", at: start) }
        position += 1
        return String(text)
    }

    private mutating func escape() throws(SubscriptionFault) -> Unicode.Scalar {
        let start = position - 1
        guard let next = peek else { throw fault("the escape has no end", at: start) }
        position += 1
        switch next {
        case "\"", "\\", "/": return next
        case "b": return "\u{8}"
        case "f": return "\u{c}"
        case "n": return "\n"
        case "r": return "\r"
        case "t": return "\t"
        case "u":
            var code = try hexadecimal(from: start)
            if (0xd800..<0xdc00).contains(code), consume("\\u") {
                let low = try hexadecimal(from: start)
                guard (0xdc00..<0xe000).contains(low) else { throw fault("no such character", at: start) }
                code = 0x1_0000 + ((code - 0xd800) << 10) + (low - 0xdc00)
            }
            guard let scalar = Unicode.Scalar(code) else { throw fault("no such character", at: start) }
            return scalar
        default: throw fault("no such escape", at: start)
        }
    }

    private mutating func hexadecimal(from start: Int) throws(SubscriptionFault) -> UInt32 {
        var code: UInt32 = 0
        for _ in 0..<4 {
            guard let digit = peek.flatMap({ Character($0).hexDigitValue }), peek?.isASCII == true else {
                throw fault("\\u has four hexadecimal digits behind it", at: start)
            }
            code = code * 16 + UInt32(digit)
            position += 1
        }
        return code
    }

    /// The text as a JSON string.
    static func quoted(_ text: String) -> String {
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": quoted += "\\\""
            case "\\": quoted += "\\\\"
            case "\n": quoted += "\\n"
            default:
                if scalar.value < 0x20 {
                    let digits = String(scalar.value, radix: 16)
                    quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
                } else {
                    quoted.unicodeScalars.append(scalar)
                }
            }
        }
        return quoted + "\""
    }

    // MARK: Tokens

    private var peek: Unicode.Scalar? { position < scalars.count ? scalars[position] : nil }

    private static func isDigit(_ scalar: Unicode.Scalar) -> Bool { ("0"..."9").contains(scalar) }

    private static func isWord(_ scalar: Unicode.Scalar) -> Bool {
        ("a"..."z").contains(scalar) || ("A"..."Z").contains(scalar) || isDigit(scalar) || scalar == "_"
    }

    mutating func skipSpace() {
        while let next = peek, [" ", "\t", "\n", "\r"].contains(next) { position += 1 }
    }

    /// Reads a word of letters, digits and _ that does not begin with a digit; nil if there is none.
    private mutating func word() -> String? {
        guard let first = peek, Self.isWord(first), !Self.isDigit(first) else { return nil }
        let start = position
        while let next = peek, Self.isWord(next) { position += 1 }
        var text = ""
        text.unicodeScalars.append(contentsOf: scalars[start..<position])
        return text
    }

    private mutating func name(_ subject: String) throws(SubscriptionFault) -> String {
        let start = position
        guard let name = word() else { throw fault("the name of \(subject) is missing") }
        guard name.utf8.count <= Limits.subscriptionNameUnits else {
            throw fault("a name has at most \(Limits.subscriptionNameUnits) letters, digits and _", at: start)
        }
        guard !Self.words.contains(name) else { throw fault("\(name) cannot be a name", at: start) }
        return name
    }

    private mutating func consumeWord(_ wanted: String) -> Bool {
        let start = position
        skipSpace()
        if word() == wanted { return true }
        position = start
        return false
    }

    private mutating func consume(_ wanted: String) -> Bool {
        let start = position
        skipSpace()
        guard scalars[position...].starts(with: wanted.unicodeScalars) else {
            position = start
            return false
        }
        position += wanted.unicodeScalars.count
        return true
    }

    private mutating func expect(_ wanted: String) throws(SubscriptionFault) {
        guard consume(wanted) else {
            skipSpace()
            throw fault("\(wanted) is missing")
        }
    }

    mutating func expectEnd() throws(SubscriptionFault) {
        skipSpace()
        guard isAtEnd else { throw fault("here it should end, or go on with and, or") }
    }
}
