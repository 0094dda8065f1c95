import Foundation
import TestSupport

/// The steps of a tutorial in Markdown: lines of `sh` blocks, and commands of apps with their screens in `console`
/// blocks: `ana> list`.
struct Tutorial {
    /// One command.
    struct Step {
        /// The app that the command is typed into; nil: a shell.
        let app: String?
        let command: String
        /// The lines of the app's screen after the command; empty: the text does not show it.
        let screen: [String]
    }

    let steps: [Step]

    init(_ markdown: String) {
        var steps: [Step] = []
        var language: Substring?
        for line in markdown.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix("```") {
                language = language == nil ? line.dropFirst(3) : nil
            } else if language == "sh", !line.isEmpty {
                steps.append(Step(app: nil, command: String(line), screen: []))
            } else if language == "console" {
                if let typed = line.wholeMatch(of: /(\w+)> (.+)/) {
                    steps.append(Step(app: String(typed.output.1), command: String(typed.output.2), screen: []))
                } else if let last = steps.popLast() {
                    steps.append(
                        Step(app: last.app, command: last.command, screen: last.screen + [String(line)]))
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
