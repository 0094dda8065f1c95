package import Foundation

/// The folder of the project, for tests that read its documents and start its scripts.
package enum ProjectFolder {
    package static let url = URL(fileURLWithPath: #filePath).appending(path: "../../..").standardizedFileURL
}
