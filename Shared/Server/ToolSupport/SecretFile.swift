import ArgumentParser
package import Foundation

/// Reads secrets from files or from standard input, because every user of a machine can read command lines.
package enum SecretFile {
    /// The text of the file without surrounding characters. Invalid UTF-8 is refused, because a repaired text would be
    /// another secret.
    ///
    /// - Parameters:
    /// - path: `-` for standard input.
    /// - around: characters to remove at both ends.
    package static func text(of path: String, without around: CharacterSet = .whitespacesAndNewlines) throws -> String {
        let data =
            path == "-" ? FileHandle.standardInput.readDataToEndOfFile() : FileManager.default.contents(atPath: path)
        guard let data, let text = String(validating: data, as: UTF8.self) else {
            throw ValidationError("cannot read the secret file \(path) as text")
        }
        return text.trimmingCharacters(in: around)
    }
}
