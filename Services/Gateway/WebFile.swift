import NIOCore

/// A file that browsers get, embedded in the binary.
struct WebFile: Sendable {
    let path: String
    let contentType: String
    let content: ByteBuffer
    /// Names this content (HTTP's ETag), so that a browser that has it is told just that.
    let tag: String
    /// Whether pages of other origins may load it.
    let isForEveryone: Bool

    private init(_ path: String, _ contentType: String, _ bytes: [UInt8], isForEveryone: Bool = false) {
        self.path = path
        self.contentType = contentType
        content = ByteBuffer(bytes: bytes)
        // FNV-1a: it only has to differ when the content does.
        let hash = bytes.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
        tag = "\"\(String(hash, radix: 16))\""
        self.isForEveryone = isForEveryone
    }

    /// The file at a path.
    static subscript(path: String) -> WebFile? { all[path] }

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

    /// What apps import, from wherever their pages are.
    private static func module(_ path: String, _ bytes: [UInt8]) -> WebFile {
        WebFile(path, "text/javascript; charset=utf-8", bytes, isForEveryone: true)
    }
}
