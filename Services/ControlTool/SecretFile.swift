import ArgumentParser
import Foundation

/// Secrets come from files, or from standard input: what stands in a command line is seen by every user of a machine.
enum SecretFile {
    /// The file's text without what is around it. Bytes that are no UTF-8 are refused: another text in their place
    /// would be another secret.
    ///
    /// - Parameters:
    ///   - path: "-": standard input.
    ///   - around: what is taken away at both ends.
    static func text(of path: String, without around: CharacterSet = .whitespacesAndNewlines) throws -> String {
        let data =
            path == "-" ? FileHandle.standardInput.readDataToEndOfFile() : FileManager.default.contents(atPath: path)
        guard let data, let text = String(validating: data, as: UTF8.self) else {
            throw ValidationError("the secret file \(path) cannot be read as text")
        }
        return text.trimmingCharacters(in: around)
    }
}
