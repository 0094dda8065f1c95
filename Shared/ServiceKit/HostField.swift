/// What may stand in the Host field of HTTP (RFC 9110, 7.2); pure.
package enum HostField {
    /// Whether the text is a name or an address, with or without a port, and nothing that another reader of the request
    /// might take for the end of it (reliability SEC5).
    package static func isValid(_ text: String) -> Bool {
        text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                true
            default: "-._~:[]%".utf8.contains(byte)
            }
        }
    }
}
