import Foundation
import TestSupport

/// The steps of a tutorial in Markdown: lines of `sh` blocks, and commands of `console` blocks with their output.
struct Tutorial {
    /// One command.
    struct Step {
        let command: String
        /// The expected output, whole lines; nil: the text shows no output.
        let output: String?
    }

    let steps: [Step]

    init(_ markdown: String) {
        var steps: [Step] = []
        var language: Substring?
        var (command, lines): (String?, [Substring]) = (nil, [])
        func finish() {
            guard let whole = command else { return }
            steps.append(Step(command: whole, output: lines.map { "\($0)\n" }.joined()))
            (command, lines) = (nil, [])
        }
        for line in markdown.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix("```") {
                finish()
                language = language == nil ? line.dropFirst(3) : nil
            } else if language == "sh", !line.isEmpty {
                steps.append(Step(command: String(line), output: nil))
            } else if language == "console" {
                if line.hasPrefix("$ ") {
                    finish()
                    command = String(line.dropFirst(2))
                } else {
                    lines.append(line)
                }
            }
        }
        self.steps = steps
    }

    /// Reads the tutorial at a path of the repository.
    init(at path: String) throws {
        let root = ProjectFolder.url
        self.init(try String(contentsOf: root.appending(path: path), encoding: .utf8))
    }
}
