import ArgumentParser
import Foundation

/// Secrets come from files, or from standard input: what stands in a command line is seen by every user of a machine.
enum SecretFile {
    /// The file's text without the white space around it.
    ///
    /// - Parameter path: "-": standard input.
    static func text(of path: String) throws -> String {
        let data =
            path == "-" ? FileHandle.standardInput.readDataToEndOfFile() : FileManager.default.contents(atPath: path)
        guard let data, let text = String(data: data, encoding: .utf8) else {
            throw ValidationError("the secret file \(path) cannot be read as text")
        }
        return text.trimmingCharacters(in: .whitespacesAndNewlines)
    }
}
