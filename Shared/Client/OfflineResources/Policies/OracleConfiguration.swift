import Foundation
import MobileSync

/// Oracle's configuration file: several backends, each with a section `synchronization`. All other parts are ignored.
///
/// XML: `<mobileBackends><mobileBackend><mbeName>…</mbeName><default>true</default><synchronization>…`, with
/// `<policies><policy>…`. Property list: `mobileBackends`, then a name, then `default` and `synchronization`. A file
/// can also contain one section alone.
struct OracleConfiguration {
    private struct Backend {
        let name: String
        let isDefault: Bool
        let synchronization: JSONValue?
    }

    private var backends: [Backend] = []

    // MARK: Formats

    /// - Throws: `ResourceError.policyFile` with the line of the error.
    init(xml: [UInt8]) throws(ResourceError) {
        let root = try ConfigurationElement.parse(xml)
        backends = root.all("mobileBackend").map { element in
            Backend(
                name: element.child("mbeName")?.text ?? element.child("name")?.text ?? "",
                isDefault: element.child("default")?.text == "true",
                synchronization: element.child("synchronization").map(Self.value))
        }
        if backends.isEmpty, let alone = root.all("synchronization").first {
            backends = [Backend(name: "", isDefault: true, synchronization: Self.value(alone))]
        }
    }

    /// - Throws: `ResourceError.policyFile`.
    init(propertyList: [UInt8]) throws(ResourceError) {
        let root: PropertyListValue
        do {
            root = try PropertyListDecoder().decode(PropertyListValue.self, from: Data(propertyList))
        } catch {
            throw ResourceError(.policyFile, "the policy file is not a valid property list (\(error))")
        }
        let all = root["mobileBackends"]?.members ?? root["mobileBackend"].map { ["": $0] } ?? [:]
        backends = all.sorted { $0.key < $1.key }.map { name, backend in
            Backend(
                name: name, isDefault: backend["default"]?.value == .boolean(true),
                synchronization: backend["synchronization"]?.value)
        }
        if backends.isEmpty, let alone = root["synchronization"] {
            backends = [Backend(name: "", isDefault: true, synchronization: alone.value)]
        }
    }

    // MARK: Reading

    /// The section of one backend, as in a JSON policy file.
    ///
    /// - Parameter name: the name of the backend; nil: the default backend, or the only one.
    func synchronization(of name: String?) throws(ResourceError) -> JSONValue {
        let names = backends.map(\.name).joined(separator: ", ")
        let found: Backend?
        if let name {
            found = backends.first { $0.name == name }
        } else {
            found = backends.count == 1 ? backends[0] : backends.first(where: \.isDefault)
        }
        guard let found else {
            let problem = name.map { "has no backend \($0)" } ?? "has no default backend"
            throw ResourceError(
                .policyFile, "the policy file \(problem); pass the name of one of its backends: \(names)")
        }
        guard let section = found.synchronization else {
            throw ResourceError(.policyFile, "backend \(found.name) of the policy file has no section synchronization")
        }
        return section
    }

    /// An element as JSON: a list of its children for `policies`, an object with other children, otherwise its text.
    private static func value(_ element: ConfigurationElement) -> JSONValue {
        if element.name == "policies" { return .array(element.children.map(value)) }
        guard element.children.isEmpty, element.name != "synchronization" else {
            return .object(
                Dictionary(element.children.map { ($0.name, value($0)) }, uniquingKeysWith: { first, _ in first }))
        }
        switch element.text {
        case "": return .null
        case "true": return .boolean(true)
        case "false": return .boolean(false)
        case let text where element.name != "path" && text.allSatisfy(\.isNumber):
            return Int64(text).map(JSONValue.integer) ?? .text(text)
        case let text: return .text(text)
        }
    }
}

/// A value of a property list.
private enum PropertyListValue: Decodable {
    case dictionary([String: PropertyListValue])
    case list([PropertyListValue])
    case scalar(JSONValue)

    init(from decoder: any Decoder) throws {
        if let members = try? [String: PropertyListValue](from: decoder) {
            self = .dictionary(members)
            return
        }
        if let list = try? [PropertyListValue](from: decoder) {
            self = .list(list)
            return
        }
        let container = try decoder.singleValueContainer()
        if let text = try? container.decode(String.self) {
            self = .scalar(.text(text))
        } else if let flag = try? container.decode(Bool.self) {
            self = .scalar(.boolean(flag))
        } else if let number = try? container.decode(Int64.self) {
            self = .scalar(.integer(number))
        } else if let number = try? container.decode(Double.self) {
            self = .scalar(.number(number))
        } else {
            // Dates and data have no meaning in a section.
            self = .scalar(.null)
        }
    }

    var members: [String: PropertyListValue]? {
        if case .dictionary(let members) = self { return members }
        return nil
    }

    subscript(_ name: String) -> PropertyListValue? { members?[name] }

    var value: JSONValue {
        switch self {
        case .dictionary(let members): .object(members.mapValues(\.value))
        case .list(let list): .array(list.map(\.value))
        case .scalar(let value): value
        }
    }
}
