import Foundation
import MobileSync

/// One object of a policy file. The parser removes the members that it knows; a remaining member is an error.
struct PolicyFileSection {
    private var members: [String: JSONValue]
    private let location: String
    /// The names of known members, for the error text.
    private var known: [String] = []

    /// - Parameter location: the place in the file, such as `policies[2]`; empty for the whole file.
    init(_ value: JSONValue, at location: String) throws(ResourceError) {
        guard case .object(let members) = value else {
            throw ResourceError(
                .policyFile, "\(location.isEmpty ? "the policy file" : location) must be an object: { … }")
        }
        self.members = members
        self.location = location
    }

    /// The place of a member in the file.
    func place(_ name: String) -> String { location.isEmpty ? name : "\(location).\(name)" }

    /// Removes and returns a member; null counts as missing.
    mutating func removeMember(_ name: String) -> JSONValue? {
        known.append(name)
        let value = members.removeValue(forKey: name)
        return value == .null ? nil : value
    }

    mutating func number(_ name: String, in range: ClosedRange<Int>) throws(ResourceError) -> Int? {
        guard let value = removeMember(name) else { return nil }
        guard let number = value.exactNumber, let whole = Int("\(number)"), range.contains(whole) else {
            throw ResourceError(
                .policyFile, "\(place(name)) must be a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return whole
    }

    mutating func flag(_ name: String) throws(ResourceError) -> Bool? {
        guard let value = removeMember(name) else { return nil }
        guard case .boolean(let flag) = value else {
            throw ResourceError(.policyFile, "\(place(name)) must be true or false")
        }
        return flag
    }

    mutating func choice<Choice: RawRepresentable & CaseIterable>(
        _ name: String
    ) throws(ResourceError) -> Choice? where Choice.RawValue == String {
        guard let value = removeMember(name) else { return nil }
        guard case .text(let text) = value, let choice = Choice(rawValue: Self.plain(text, of: name)) else {
            let names = Choice.allCases.map(\.rawValue).joined(separator: ", ")
            throw ResourceError(.policyFile, "\(place(name)) must be one of \(names)")
        }
        return choice
    }

    /// A value without the prefix of Oracle's constants, such as `FETCH_POLICY_` for `fetchPolicy`. Oracle's library
    /// for iOS writes STARTUP as two words.
    private static func plain(_ text: String, of name: String) -> String {
        let prefix = name.reduce(into: "") { $0 += ($1.isUppercase ? "_" : "") + $1.uppercased() } + "_"
        let plain = text.hasPrefix(prefix) ? String(text.dropFirst(prefix.count)) : text
        return plain.replacing("START_UP", with: "STARTUP")
    }

    mutating func list(_ name: String) throws(ResourceError) -> [JSONValue] {
        guard let value = removeMember(name) else { return [] }
        guard case .array(let list) = value else {
            throw ResourceError(.policyFile, "\(place(name)) must be a list: [ … ]")
        }
        return list
    }

    mutating func pattern() throws(ResourceError) -> PathPattern {
        guard case .text(let text)? = removeMember("path") else {
            throw ResourceError(.policyFile, "\(place("path")) is missing; add a path such as /incidents/*")
        }
        do {
            return try PathPattern(text)
        } catch {
            throw ResourceError(.policyFile, "\(place("path")): \(error.message)")
        }
    }

    mutating func policy() throws(ResourceError) -> SyncPolicy {
        var policy = SyncPolicy()
        policy.conflictResolutionPolicy = try choice("conflictResolutionPolicy")
        policy.evictionPolicy = try choice("evictionPolicy")
        policy.expirationPolicy = try choice("expirationPolicy")
        policy.expireAfter = try number("expireAfter", in: 0...Int.max).map { .seconds($0) }
        policy.fetchPolicy = try choice("fetchPolicy")
        policy.noCache = try flag("noCache")
        policy.updatePolicy = try choice("updatePolicy")
        if let fault = policy.fault { throw ResourceError(.policyFile, "\(place("expirationPolicy")): \(fault)") }
        return policy
    }

    /// Ends the section.
    ///
    /// - Throws: `ResourceError.policyFile` when a member is not known.
    func finish() throws(ResourceError) {
        guard let other = members.keys.min() else { return }
        throw ResourceError(
            .policyFile, "\(place(other)) is not known; known members are \(known.sorted().joined(separator: ", "))")
    }
}
