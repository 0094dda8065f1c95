import Foundation
import SyncModel

/// Builds paths of the console's pages; escapes every part.
enum Paths {
    /// A page of an instance.
    ///
    /// - Parameter query: names and values; nil and empty values are left out.
    static func page(_ instanceID: InstanceID, _ parts: String..., query: [(String, String?)] = []) -> String {
        let path = (["instances", instanceID.text] + parts).map(escape).joined(separator: "/")
        return "/\(path)\(Self.query(query))"
    }

    /// `?name=value&…`, or nothing.
    static func query(_ values: [(String, String?)]) -> String {
        let given = values.compactMap { name, value in
            value.flatMap { $0.isEmpty ? nil : "\(name)=\(escape($0))" }
        }
        return given.isEmpty ? "" : "?\(given.joined(separator: "&"))"
    }

    private static func escape(_ text: String) -> String {
        text.addingPercentEncoding(withAllowedCharacters: unreserved) ?? ""
    }

    /// RFC 3986, 2.3.
    private static let unreserved = CharacterSet(
        charactersIn: "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")
}
