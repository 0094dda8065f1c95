import Foundation

/// One object of a policy file, whose members are taken one by one; what is left over is a mistake.
struct PolicyFileSection {
    private var members: [String: ResourceValue]
    private let location: String
    /// What has been asked for; listed for who wrote another name.
    private var known: [String] = []

    /// - Parameter location: such as `policies[2]`; empty for the whole file.
    init(_ value: ResourceValue, at location: String) throws(ResourceError) {
        guard case .object(let members) = value else {
            throw ResourceError(
                .policyFile, "\(location.isEmpty ? "the policy file" : location) has to be an object: { … }")
        }
        self.members = members
        self.location = location
    }

    /// A member's place in the file.
    func place(_ name: String) -> String { location.isEmpty ? name : "\(location).\(name)" }

    /// Takes a member out; null counts as missing.
    mutating func take(_ name: String) -> ResourceValue? {
        known.append(name)
        let value = members.removeValue(forKey: name)
        return value == .null ? nil : value
    }

    mutating func number(_ name: String, in range: ClosedRange<Int>) throws(ResourceError) -> Int? {
        guard let value = take(name) else { return nil }
        guard case .number(let number) = value, let whole = Int(number.description), range.contains(whole) else {
            throw ResourceError(
                .policyFile, "\(place(name)) takes a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return whole
    }

    mutating func flag(_ name: String) throws(ResourceError) -> Bool? {
        guard let value = take(name) else { return nil }
        guard case .bool(let flag) = value else {
            throw ResourceError(.policyFile, "\(place(name)) takes true or false")
        }
        return flag
    }

    mutating func choice<Choice: RawRepresentable & CaseIterable>(
        _ name: String
    ) throws(ResourceError) -> Choice? where Choice.RawValue == String {
        guard let value = take(name) else { return nil }
        guard case .text(let text) = value, let choice = Choice(rawValue: text) else {
            let names = Choice.allCases.map(\.rawValue).joined(separator: ", ")
            throw ResourceError(.policyFile, "\(place(name)) takes one of \(names)")
        }
        return choice
    }

    mutating func list(_ name: String) throws(ResourceError) -> [ResourceValue] {
        guard let value = take(name) else { return [] }
        guard case .list(let list) = value else {
            throw ResourceError(.policyFile, "\(place(name)) has to be a list: [ … ]")
        }
        return list
    }

    mutating func pattern() throws(ResourceError) -> PathPattern {
        guard case .text(let text)? = take("path") else {
            throw ResourceError(.policyFile, "\(place("path")) is missing: name a path such as /incidents/*")
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

    /// - Throws: `ResourceError.policyFile` when a member was not asked for.
    func finish() throws(ResourceError) {
        guard let other = members.keys.min() else { return }
        throw ResourceError(
            .policyFile, "\(place(other)) is not known; known here are \(known.sorted().joined(separator: ", "))")
    }
}
