public import Foundation
import MobileSync

/// A policy file with the terms of Oracle's Synchronization library (RES6): JSON, or Oracle's own configuration file,
/// which is XML for Android and a property list for iOS.
///
/// Members, all optional: `maxStoreSize` (MB), `periodicRefreshPolicy`, `periodicRefreshInterval` (seconds),
/// `defaultPolicy` (of the backend), `policies` (each with a `path`). A member `synchronization` can contain them all.
public struct PolicyFile: Sendable, Hashable {
    /// The largest size of the cache in bytes; nil when the file does not set it.
    public let maxStoreSize: Int?
    public let periodicRefreshPolicy: PeriodicRefreshPolicy?
    public let periodicRefreshInterval: Duration?
    public let book: PolicyBook

    /// Reads a policy file. Its content decides the format: JSON, XML or a property list.
    ///
    /// - Parameter backend: the name of the backend in Oracle's file; nil: the file's default backend, or its only one.
    ///   It has no meaning for JSON.
    /// - Throws: `ResourceError.policyFile`; the message has the place of the error and the allowed values.
    public init(contentsOf url: URL, backend: String? = nil) throws(ResourceError) {
        let data: Data
        do {
            data = try Data(contentsOf: url)
        } catch {
            throw ResourceError(.policyFile, "the policy file \(url.path) cannot be read (\(error)); check its path")
        }
        let start = String(decoding: data.prefix(1_000), as: UTF8.self)
        if start.hasPrefix("bplist") || start.contains("<plist") {
            try self.init(propertyList: [UInt8](data), backend: backend)
        } else if start.drop(while: { $0.isWhitespace || $0 == "\u{FEFF}" }).first == "<" {
            try self.init(xml: [UInt8](data), backend: backend)
        } else {
            try self.init(json: [UInt8](data))
        }
    }

    /// Parses Oracle's configuration file of Android apps, `oracle_mobile_cloud_config.xml`.
    ///
    /// - Parameter backend: as for `init(contentsOf:backend:)`.
    /// - Throws: as `init(contentsOf:backend:)`.
    public init(xml: [UInt8], backend: String? = nil) throws(ResourceError) {
        try self.init(OracleConfiguration(xml: xml).synchronization(of: backend))
    }

    /// Parses Oracle's configuration file of iOS apps, `OMC.plist`, as XML or binary.
    ///
    /// - Parameter backend: as for `init(contentsOf:backend:)`.
    /// - Throws: as `init(contentsOf:backend:)`.
    public init(propertyList: [UInt8], backend: String? = nil) throws(ResourceError) {
        try self.init(OracleConfiguration(propertyList: propertyList).synchronization(of: backend))
    }

    /// Parses a policy file in JSON.
    ///
    /// - Throws: as `init(contentsOf:backend:)`.
    public init(json: [UInt8]) throws(ResourceError) {
        guard let value = JSONValue.parse(json) else {
            throw ResourceError(.policyFile, "the policy file is not JSON; check commas, quotes and brackets")
        }
        try self.init(value)
    }

    private init(_ value: JSONValue) throws(ResourceError) {
        var root = try PolicyFileSection(value, at: "")
        if let inner = root.removeMember("synchronization") {
            try root.finish()
            root = try PolicyFileSection(inner, at: "synchronization")
        }
        maxStoreSize = try root.number("maxStoreSize", in: 1...100_000).map { $0 * 1_000_000 }
        periodicRefreshPolicy = try root.choice("periodicRefreshPolicy")
        periodicRefreshInterval = try root.number("periodicRefreshInterval", in: 1...86_400 * 366).map { .seconds($0) }
        var book = PolicyBook()
        if let value = root.removeMember("defaultPolicy") {
            var section = try PolicyFileSection(value, at: root.place("defaultPolicy"))
            book.backendDefault = try section.policy()
            try section.finish()
        }
        for (index, value) in try root.list("policies").enumerated() {
            var section = try PolicyFileSection(value, at: root.place("policies[\(index)]"))
            let pattern = try section.pattern()
            guard book.paths[pattern] == nil else {
                throw ResourceError(.policyFile, "\(section.place("path")) is a repeated path; merge both entries")
            }
            book.paths[pattern] = try section.policy()
            try section.finish()
        }
        try root.finish()
        self.book = book
    }
}
