package import NIOCore

/// A file of the browser's client library or of the demo page, embedded in the gateway's binary.
package struct WebFile: Sendable {
    /// The path of its URL, from the root of the gateway's port.
    package let path: String
    package let contentType: String
    package let content: ByteBuffer
    /// The ETag: the gateway answers 304 to a browser that has this content.
    package let tag: String
    /// Whether pages of other origins may load it.
    package let isForEveryone: Bool

    private init(_ path: String, _ contentType: String, _ bytes: [UInt8], isForEveryone: Bool = false) {
        self.path = path
        self.contentType = contentType
        content = ByteBuffer(bytes: bytes)
        // FNV-1a is enough: the tag must only change with the content.
        let hash = bytes.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
        tag = "\"\(String(hash, radix: 16))\""
        self.isForEveryone = isForEveryone
    }

    /// Returns the file at a path; nil when there is none.
    package static subscript(path: String) -> WebFile? { all[path] }

    private static let all = Dictionary(
        uniqueKeysWithValues: [
            WebFile("/", "text/html; charset=utf-8", PackageResources.index_html),
            WebFile("/demo.css", "text/css; charset=utf-8", PackageResources.demo_css),
            WebFile("/demo.js", "text/javascript; charset=utf-8", PackageResources.demo_js),
            module("/mss-client.js", PackageResources.mss_client_js),
            module("/sync-express.js", PackageResources.sync_express_js),
            module("/sync-express-rules.js", PackageResources.sync_express_rules_js),
            module("/sync-express-rows.js", PackageResources.sync_express_rows_js),
        ].map { ($0.path, $0) })

    /// Creates a module that pages of any origin can import.
    private static func module(_ path: String, _ bytes: [UInt8]) -> WebFile {
        WebFile(path, "text/javascript; charset=utf-8", bytes, isForEveryone: true)
    }
}
