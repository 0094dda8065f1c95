/// A change of the bound user on a device, for the tenant (DeviceProtocol.md, Operations; ENT10).
package struct DeviceOperation: Hashable, Sendable {
    /// Chosen by the device. The tenant executes an operation id once.
    package var id: String
    /// The type of the entity, in the form of a Sync ID. New states of entities are pushed under this Sync ID.
    package var component: String
    /// The entity's key. Operations on one (component, key) are executed in their order.
    package var key: String
    /// `create`, `update`, `delete`, or a name of the app.
    package var name: String
    /// JSON or any other bytes.
    package var body: [UInt8]
    /// Operations for the same call; they have no children.
    package var children: [DeviceOperation]
    /// The device's clock at the submission.
    package var submittedAt: WallTime

    package init(
        id: String, component: String, key: String, name: String, body: [UInt8] = [], children: [DeviceOperation] = [],
        submittedAt: WallTime = WallTime(milliseconds: 0)
    ) {
        self.id = id
        self.component = component
        self.key = key
        self.name = name
        self.body = body
        self.children = children
        self.submittedAt = submittedAt
    }

    /// Whether the text is a valid operation id.
    package static func isID(_ text: String) -> Bool {
        (1...Limits.operationIDBytes).contains(text.utf8.count) && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }

    /// The fault of the operation, as a sentence for the sender; nil for a valid one.
    package var fault: String? {
        if let fault = ownFault { return fault }
        guard children.count <= Limits.operationChildren else {
            return "an operation has at most \(Limits.operationChildren) children"
        }
        for child in children {
            if let fault = child.ownFault { return "a child: \(fault)" }
            if !child.children.isEmpty { return "a child has no children" }
        }
        guard children.reduce(body.count, { $0 + $1.body.count }) <= Limits.operationBodyBytes else {
            return
                "the bodies of an operation and its children have at most \(Limits.operationBodyBytes) bytes together"
        }
        guard Set(children.map(\.id) + [id]).count == children.count + 1 else {
            return "an operation and its children have different ids"
        }
        return nil
    }

    /// The fault without regard to children.
    private var ownFault: String? {
        guard Self.isID(id) else {
            return "an operation id has 1 to \(Limits.operationIDBytes) printable ASCII characters without spaces"
        }
        guard (1...Limits.bizTypeUnits).contains(component.utf8.count), component.utf8.allSatisfy(Self.mayStandInSyncID)
        else { return "a component has 1 to \(Limits.bizTypeUnits) letters, digits, '-', '_' or '.'" }
        guard (1...Limits.entityKeyBytes).contains(key.utf8.count), !key.utf8.contains(0) else {
            return "an entity's key has 1 to \(Limits.entityKeyBytes) bytes without NUL"
        }
        guard (1...Limits.operationNameUnits).contains(name.utf16.count), !name.utf8.contains(where: { $0 < 0x20 })
        else { return "an operation's name has 1 to \(Limits.operationNameUnits) characters" }
        return nil
    }

    private static func mayStandInSyncID(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
            true
        default: false
        }
    }

    /// The entities that it changes: its own, then those of its children, each once.
    package var entities: [Entity] {
        var seen = Set<Entity>()
        return ([self] + children).map { Entity(component: $0.component, key: $0.key) }.filter {
            seen.insert($0).inserted
        }
    }

    /// An entity of an instance that operations change.
    package struct Entity: Hashable, Sendable {
        package let component: String
        package let key: String

        package init(component: String, key: String) {
            self.component = component
            self.key = key
        }

        // Byte by byte, like identifiers.
        package static func == (left: Self, right: Self) -> Bool {
            left.component.isSame(as: right.component) && left.key.isSame(as: right.key)
        }

        package func hash(into hasher: inout Hasher) {
            component.hashBytes(into: &hasher)
            key.hashBytes(into: &hasher)
        }
    }
}

/// The state of a stored device operation. The raw values are stored in the database.
package enum DeviceOperationState: Int16, Sendable, CaseIterable {
    /// Waits for its turn or for the tenant.
    case waiting = 1
    /// The tenant has answered, or the operation is dead; the result is not pushed yet.
    case answered = 2
    /// The tenant has accepted it, and the result is pushed.
    case accepted = 3
    /// The tenant has refused it, and the result is pushed.
    case refused = 4
    /// Dead after too many attempts, and the result is pushed. An operator can retry it.
    case dead = 5

    /// The state in commands and in the API.
    package var word: String {
        switch self {
        case .waiting: "waiting"
        case .answered: "answered"
        case .accepted: "accepted"
        case .refused: "refused"
        case .dead: "dead"
        }
    }

    /// The state with this word; nil for an unknown word.
    package init?(word: String) {
        guard let state = Self.allCases.first(where: { $0.word == word }) else { return nil }
        self = state
    }
}
