/// A subscription parameter that has a value.
public struct SyncParameter: Sendable, Hashable {
    /// The Sync ID whose filter it is for.
    public let bizType: String
    public let name: String
    public let kind: SyncParameterKind
    public let value: SyncParameterValue
    /// Of the kind `server`: the service has not said yet that it keeps it.
    public let isPending: Bool

    init(bizType: String, name: String, kind: SyncParameterKind, value: SyncParameterValue, isPending: Bool = false) {
        self.bizType = bizType
        self.name = name
        self.kind = kind
        self.value = value
        self.isPending = isPending
    }
}
