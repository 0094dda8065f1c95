public import Foundation

/// How a device collects and sends its log.
public struct DiagnosisSettings: Sendable {
    /// Bytes of a part, 1,000 to 10,000,000; what the way up takes at most.
    public var partBytes = 128_000
    /// Makes a piece of the log smaller. The pieces are put one behind the other, so the format has to allow that, as
    /// gzip does. Nil: the log is sent as it is.
    public var compress: (@Sendable (Data) throws -> Data)?
    /// What is added to the file's name when it is compressed, such as `.gz`.
    public var compressedSuffix = ""

    /// Parts of 128,000 bytes, not compressed.
    public init() {}
}
