/// A file that pages load, embedded in the binary.
struct Asset: Sendable {
    let type: String
    let bytes: [UInt8]
    /// Names this content (HTTP's ETag).
    let tag: String

    private init(_ type: String, _ bytes: [UInt8]) {
        self.type = type
        self.bytes = bytes
        // FNV-1a: it only has to differ when the content does.
        let hash = bytes.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
        tag = "\"\(String(hash, radix: 16))\""
    }

    /// Files by path.
    static let all = [
        "/assets/console.css": Asset("text/css; charset=utf-8", PackageResources.console_css),
        "/assets/console.js": Asset("text/javascript; charset=utf-8", PackageResources.console_js),
        "/assets/icon.svg": Asset("image/svg+xml", PackageResources.icon_svg),
    ]
}
