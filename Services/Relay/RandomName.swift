import Credentials

/// Names that nobody else makes.
enum RandomName {
    /// 32 hex digits.
    static func make() -> String { HexText.of(RandomBytes.make(16)) }
}
