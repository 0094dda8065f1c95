import Foundation

/// One file of the project.
struct SourceFile: Sendable {
    /// The path relative to the project's folder, for example `Shared/README.md`.
    let path: String
    let text: String
    let lines: [String]

    var isSwift: Bool { path.hasSuffix(".swift") && !isGenerated }
    var isTest: Bool { path.hasPrefix("Tests/") }
    private var isGenerated: Bool { path.hasSuffix(".pb.swift") }

    init(path: String, text: String) {
        self.path = path
        self.text = text
        lines = text.components(separatedBy: "\n")
    }

    /// The project's folder.
    static let root = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../..").standardizedFileURL

    /// Folders of generated files that are not text: Python's cache, the fuzzer's inputs and screenshots.
    private static let madeFolders = ["/__pycache__/", "/Fuzz/corpus/", "/Pictures/"]

    /// All files that people write, sorted by path. They are read once.
    static func all() throws -> [SourceFile] { try files.get() }

    private static let files = Result { try readAll() }

    private static func readAll() throws -> [SourceFile] {
        var files: [SourceFile] = []
        for folder in ["Services", "Shared", "Tests", "deploy"] {
            let start = root.appending(path: folder)
            let contents = FileManager.default.enumerator(at: start, includingPropertiesForKeys: nil)
            while let url = contents?.nextObject() as? URL {
                guard !url.hasDirectoryPath, !madeFolders.contains(where: url.path.contains) else { continue }
                try files.append(read(url))
            }
        }
        for name in ["Package.swift", "README.md", "docker-compose.yml"] {
            try files.append(read(root.appending(path: name)))
        }
        return files.sorted { $0.path < $1.path }
    }

    /// The marks of comments, by the ends of the files' names.
    private static let commentMarks = [
        "swift": "//", "proto": "//", "java": "//", "gradle": "//", "js": "//", "mjs": "//", "c": "//", "h": "//",
        "sql": "--", "sh": "# ",
        "py": "# ", "yaml": "# ", "yml": "# ", "conf": "# ", "toml": "# ", "service": "# ", "Dockerfile": "# ",
        "up": "# ", "down": "# ", "test": "# ", "fuzz": "# ", "known-bad": "# ",
    ]

    /// The text of a line for readers: a comment or a test's name; in a document the whole line.
    func prose(of line: String) -> Substring {
        if suffix == "md" { return line[...] }
        // The lines of a comment of several lines.
        if suffix == "java", line.contains(/^ *\/?\*/) { return line[...] }
        if line.contains("@Test(") || line.contains("@Suite("),
            let start = line.firstIndex(of: "\""), let end = line.lastIndex(of: "\"")
        {
            return line[start...end]
        }
        let mark = Self.commentMarks[suffix].flatMap { line.range(of: $0) }
        return mark.map { line[$0.lowerBound...] } ?? line.suffix(0)
    }

    private static func read(_ url: URL) throws -> SourceFile {
        let path = url.standardizedFileURL.path.dropFirst(root.path.count).drop { $0 == "/" }
        return SourceFile(path: String(path), text: try String(contentsOf: url, encoding: .utf8))
    }
}
