import Foundation
import MobileSync

/// The size and the time of the last change of a local file. Another file, or a changed one, has another value.
struct FileFingerprint: Sendable, Hashable {
    /// In bytes.
    let size: Int64
    /// With milliseconds.
    let modifiedAt: Date

    init(size: Int64, modifiedAt: Date) {
        self.size = size
        self.modifiedAt = Date(milliseconds: modifiedAt.milliseconds)
    }

    /// - Throws: `ResourceError.file` when the file cannot be read.
    init(at url: URL) throws(ResourceError) {
        guard let attributes = try? FileManager.default.attributesOfItem(atPath: url.path),
            attributes[.type] as? FileAttributeType == .typeRegular,
            FileManager.default.isReadableFile(atPath: url.path),
            let size = (attributes[.size] as? NSNumber)?.int64Value
        else { throw ResourceError(.file, "\(url.path) is not a readable file; check its path") }
        self.init(size: size, modifiedAt: attributes[.modificationDate] as? Date ?? .distantPast)
    }
}
