import ArgumentParser
import Foundation
import TestSupport
import Testing

@testable import ControlTool

@Suite("Commands in the documentation") struct DocumentedCommandTests {
    private static let root = ProjectFolder.url

    /// The placeholders in documents, with an example value of each.
    private static let placeholders = ["PURPOSE": "backend", "$part": "1"]

    /// The command lines of the tool in shell blocks, without comments and redirections. Each alternative is a line.
    private static func commands() throws -> [(file: String, words: [String])] {
        var commands: [(file: String, words: [String])] = []
        let files = FileManager.default.enumerator(at: root, includingPropertiesForKeys: nil)
        while let url = files?.nextObject() as? URL {
            if url.lastPathComponent.hasPrefix(".") { files?.skipDescendants() }
            guard url.pathExtension == "md" else { continue }
            var isShell = false
            let text = try String(contentsOf: url, encoding: .utf8).replacing("\\\n", with: " ")
            for line in text.split(separator: "\n") {
                let line = line.trimmingCharacters(in: .whitespaces)
                if line.hasPrefix("```") {
                    isShell = line == "```sh"
                } else if isShell, line.hasPrefix("mssctl "), !line.contains("…") {
                    commands += alternatives(line).map { (url.lastPathComponent, words(of: $0)) }
                }
            }
        }
        return commands
    }

    /// Splits alternatives: `mssctl key list | revoke KEY` are two lines.
    private static func alternatives(_ line: String) -> [String] {
        let line = line.split(separator: " #", maxSplits: 1)[0].split(separator: " > ", maxSplits: 1)[0]
        let parts = line.components(separatedBy: " | ")
        let beginning = parts[0].split(separator: " ").prefix(2).joined(separator: " ")
        return [parts[0]] + parts.dropFirst().map { "\(beginning) \($0)" }
    }

    /// Splits a line into words like a shell; it supports single quotes only.
    private static func words(of line: String) -> [String] {
        line.components(separatedBy: "'").enumerated().flatMap { index, part in
            index.isMultiple(of: 2) ? part.split(separator: " ").map(String.init) : [part]
        }.map { word in placeholders.reduce(word) { $0.replacing($1.key, with: $1.value) } }
    }

    @Test("the tool accepts each mssctl command of the documentation") func parses() throws {
        let commands = try Self.commands()
        #expect(commands.count > 40)
        for (file, words) in commands {
            // `load` checks that the authority's file exists.
            let arguments = words.dropFirst().filter { $0 != "&" } + (words[1] == "load" ? ["--ca", "README.md"] : [])
            #expect(throws: Never.self, "\(file): \(words.joined(separator: " "))") {
                _ = try ControlTool.parseAsRoot(Array(arguments))
            }
        }
        #expect(throws: (any Error).self) { try ControlTool.parseAsRoot(["explain", "--instanze", "a"]) }
    }
}
