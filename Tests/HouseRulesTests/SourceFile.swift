import Foundation

/// One file of the project.
struct SourceFile: Sendable {
    /// The path relative to the project's folder, for example `Shared/README.md`.
    let path: String
    let lines: [String]

    var isSwift: Bool { path.hasSuffix(".swift") && !isGenerated }
    var isTest: Bool { path.hasPrefix("Tests/") }
    private var isGenerated: Bool { path.hasSuffix(".pb.swift") }

    init(path: String, text: String) {
        self.path = path
        lines = text.components(separatedBy: "\n")
    }

    /// The project's folder.
    static let root = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../..").standardizedFileURL

    /// Folders of generated files that are not text: Python's cache, the fuzzer's inputs and screenshots.
    private static let madeFolders = ["/__pycache__/", "/Fuzz/corpus/", "/Pictures/"]

    /// All files that people write, sorted by path.
    static func all() throws -> [SourceFile] {
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

    private static func read(_ url: URL) throws -> SourceFile {
        let path = url.standardizedFileURL.path.dropFirst(root.path.count).drop { $0 == "/" }
        return SourceFile(path: String(path), text: try String(contentsOf: url, encoding: .utf8))
    }
}
