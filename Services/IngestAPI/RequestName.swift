/// The name under which one request is found in answers and logs.
enum RequestName {
    /// A fresh one: 16 hexadecimal digits, random.
    static func make() -> String {
        let digits = String(UInt64.random(in: .min ... .max), radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
