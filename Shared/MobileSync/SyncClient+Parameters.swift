import SyncModel

/// Subscription parameters: values that decide what of a Sync ID this user is sent, by the filter of its configuration.
extension SyncClient {
    /// Sets a parameter of a Sync ID for the bound user, or, while nobody is bound, for the device; nil takes the value
    /// away. It goes to the service at once, or when there is a connection; what matches now comes then, older data
    /// too, each oplog once.
    ///
    /// - Parameter kind: `server` needs a bound user. The service refuses a name or type that the configuration does not
    ///   have (`SyncEvent.parameterRefused`); of the other kinds it goes by those that it has.
    /// - Throws: `SyncError.store`; `invalidArgument` for a name or value that cannot be, for more than 64 values, or
    ///   without a user where one is needed.
    public func setParameter(
        _ name: String, of bizType: String, to value: SyncParameterValue?, kind: SyncParameterKind = .client
    ) async throws(SyncError) {
        try Self.checkTaken(bizType)
        guard (1...Limits.subscriptionNameUnits).contains(name.utf16.count), !name.utf8.contains(0) else {
            throw SyncError(
                .invalidArgument, "a parameter's name has 1 to \(Limits.subscriptionNameUnits) characters")
        }
        guard value?.model.isStorable ?? true else {
            throw SyncError(
                .invalidArgument,
                "a value is a finite number, or a text of up to \(Limits.subscriptionValueUnits) characters without NUL"
            )
        }
        let userID = board.user?.userID
        guard kind != .server || userID != nil else {
            throw SyncError(.invalidArgument, "the server keeps values for users: bind one first")
        }
        try await engine.setParameter(
            DeviceParameter(bizType: BizType(bizType), name: name, value: value?.model), kind: kind, userID: userID)
    }

    /// The value of a parameter in force for the bound user: of the session, of the client, of the server as last known
    /// here; nil: the configuration's default.
    ///
    /// - Throws: `SyncError.store`.
    public func parameter(_ name: String, of bizType: String) async throws(SyncError) -> SyncParameterValue? {
        try await parameters().filter { $0.bizType.isSame(as: bizType) && $0.name.isSame(as: name) }
            .min { $0.kind.rawValue < $1.kind.rawValue }?.value
    }

    /// All values of the bound user, or, while nobody is bound, of the device.
    ///
    /// - Throws: `SyncError.store`.
    public func parameters() async throws(SyncError) -> [SyncParameter] {
        try await engine.parameters(ofUser: board.user?.userID)
    }
}
