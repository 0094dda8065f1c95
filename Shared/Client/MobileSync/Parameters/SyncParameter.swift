/// A subscription parameter with its value.
public struct SyncParameter: Sendable, Hashable {
    /// The Sync ID whose filter uses the parameter.
    public let bizType: String
    /// The name of the parameter in the filter.
    public let name: String
    /// The place where the value is kept.
    public let kind: SyncParameterKind
    /// The value.
    public let value: SyncParameterValue
    /// True for a parameter of the kind `server` while the service has not confirmed that it stores the value.
    public let isPending: Bool

    init(bizType: String, name: String, kind: SyncParameterKind, value: SyncParameterValue, isPending: Bool = false) {
        self.bizType = bizType
        self.name = name
        self.kind = kind
        self.value = value
        self.isPending = isPending
    }
}
