/// A console user and the user's roles.
package struct ConsoleAccount: Hashable, Sendable {
    /// The key of grants for all instances and for the service itself.
    package static let everyInstance = InstanceID("")

    package var name: String
    /// Roles by instance.
    package var grants: [InstanceID: ConsoleRole]
    /// `en` or `zh`; empty: the browser's language.
    package var language: String
    package var isEnabled: Bool
    package var hasPassword: Bool
    package var hasSecondFactor: Bool
    /// Rises with every change of the grants.
    package var revision: Int

    package init(
        name: String, grants: [InstanceID: ConsoleRole], language: String = "", isEnabled: Bool = true,
        hasPassword: Bool = false, hasSecondFactor: Bool = false, revision: Int = 0
    ) {
        self.name = name
        self.grants = grants
        self.language = language
        self.isEnabled = isEnabled
        self.hasPassword = hasPassword
        self.hasSecondFactor = hasSecondFactor
        self.revision = revision
    }

    /// The role at an instance; nil for none.
    package func role(at instanceID: InstanceID) -> ConsoleRole? {
        [grants[instanceID], grants[Self.everyInstance]].compactMap { $0 }.max()
    }

    /// The fault that prevents storing the account, as a sentence; nil for a valid one.
    package var fault: String? {
        guard Self.isName(name) else {
            return "an account's name has 1 to 64 letters, digits, '-', '_', '.' or '@'"
        }
        guard (1...1_000).contains(grants.count) else { return "an account needs a role at one instance at least" }
        return nil
    }

    /// Whether the account may change anything: at least one role is operations or administrator.
    package var mayChange: Bool { grants.values.contains { $0 >= .operations } }

    /// Whether the text is a valid account name.
    package static func isName(_ name: String) -> Bool {
        let allowed = name.utf8.allSatisfy {
            switch $0 {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."),
                UInt8(ascii: "@"):
                true
            default: false
            }
        }
        return allowed && (1...64).contains(name.utf8.count) && name != "." && name != ".."
    }
}

/// The rights of a console user. Each role includes the previous ones (C8, SEC14).
package enum ConsoleRole: Int16, Comparable, Sendable, CaseIterable {
    /// May view everything at the instance.
    case viewer = 1
    /// May change configurations, push, recall and disconnect.
    case operations = 2
    /// May change keys, signatures, validators and accounts, and for the whole service also instances.
    case administrator = 3

    /// The role in the API and on the pages.
    package var word: String {
        switch self {
        case .viewer: "viewer"
        case .operations: "operator"
        case .administrator: "administrator"
        }
    }

    package init?(word: String) {
        guard let role = Self.allCases.first(where: { $0.word == word }) else { return nil }
        self = role
    }

    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}
