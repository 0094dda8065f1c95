public import Foundation

/// The settings for collecting and uploading the log.
public struct DiagnosisSettings: Sendable {
    /// The size of a part in bytes, 1,000 to 10,000,000. The uploader can have a lower limit.
    public var partBytes = 128_000
    /// Compresses a piece of the log. The compressed pieces are concatenated, so the format must allow that, as gzip
    /// does. A nil value means: the log is not compressed.
    public var compress: (@Sendable (Data) throws -> Data)?
    /// The suffix of the file name when the log is compressed, such as `.gz`.
    public var compressedSuffix = ""

    /// The defaults: parts of 128,000 bytes, no compression.
    public init() {}
}
