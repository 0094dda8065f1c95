/// A person who may use the console, and what for.
package struct ConsoleAccount: Hashable, Sendable {
    /// The instance that stands for all of them and for the service itself.
    package static let everyInstance = InstanceID("")

    package var name: String
    /// What it may do, by instance.
    package var grants: [InstanceID: ConsoleRole]
    /// `en`, `zh`; empty: as the browser says.
    package var language: String
    package var isEnabled: Bool
    package var hasPassword: Bool
    package var hasSecondFactor: Bool
    /// Rises with every change of its grants.
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

    /// Its role at an instance; nil: none.
    package func role(at instanceID: InstanceID) -> ConsoleRole? {
        [grants[instanceID], grants[Self.everyInstance]].compactMap { $0 }.max()
    }

    /// What is wrong with it, for whoever wants to store it; nil when it can be.
    package var fault: String? {
        guard Self.isName(name) else {
            return "an account's name has 1 to 64 letters, digits, '-', '_', '.' or '@'"
        }
        guard (1...1_000).contains(grants.count) else { return "an account needs a role at one instance at least" }
        return nil
    }

    /// Whether it may change things somewhere: an operator or administrator.
    package var mayChange: Bool { grants.values.contains { $0 >= .operations } }

    /// Whether an account can have this name.
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
