/// Something that the bound user did on a device, on its way to the tenant (DeviceProtocol.md, Operations; spec,
/// two-way §2).
package struct DeviceOperation: Hashable, Sendable {
    /// Chosen by the device; the tenant does an operation of an id once.
    package var id: String
    /// What kind of thing it is done to; imports come under this Sync ID.
    package var component: String
    /// Which thing: operations on one (component, key) are done in their order.
    package var key: String
    /// `create`, `update`, `delete`, or the app's own.
    package var name: String
    /// JSON, or any bytes.
    package var body: [UInt8]
    /// Done with it, in the same call; they have no children.
    package var children: [DeviceOperation]
    /// By the device's clock.
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

    /// Whether a text can be an operation's id.
    package static func isID(_ text: String) -> Bool {
        (1...Limits.operationIDBytes).contains(text.utf8.count) && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }

    /// What is wrong with it, for whoever submits it; nil when it can be taken.
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

    /// The same without its children.
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

    /// The things that it is done to: its own, then its children's, each once.
    package var entities: [Entity] {
        var seen = Set<Entity>()
        return ([self] + children).map { Entity(component: $0.component, key: $0.key) }.filter {
            seen.insert($0).inserted
        }
    }

    /// One thing of an instance that operations are done to.
    package struct Entity: Hashable, Sendable {
        package let component: String
        package let key: String

        package init(component: String, key: String) {
            self.component = component
            self.key = key
        }

        // Byte by byte, as identifiers are.
        package static func == (left: Self, right: Self) -> Bool {
            left.component.isSame(as: right.component) && left.key.isSame(as: right.key)
        }

        package func hash(into hasher: inout Hasher) {
            component.hashBytes(into: &hasher)
            key.hashBytes(into: &hasher)
        }
    }
}
