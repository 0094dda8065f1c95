import SyncModel

/// Subscription parameters: values with which the filter of a configuration selects the oplogs for this user.
extension SyncClient {
    /// Sets a parameter of a Sync ID for the bound user, or for the device when no user is bound.
    ///
    /// The client sends the value at once, or with the next connection. The service then sends the oplogs that match
    /// the new value, older ones too, each oplog once.
    ///
    /// - Parameters:
    ///   - name: the name of the parameter in the configuration's filter.
    ///   - bizType: the Sync ID.
    ///   - value: the value; nil removes it.
    ///   - kind: the place where the value is kept; `client` by default. `server` needs a bound user. The service
    ///     refuses a `server` value with a name or type that the configuration does not have
    ///     (`SyncEvent.parameterRefused`). It ignores such a value of the other kinds.
    /// - Throws: `SyncError.store`; `invalidArgument` for an invalid name or value, for more than 64 values of the
    ///   kinds `session` and `client`, or when `server` is used without a bound user.
    public func setParameter(
        _ name: String, of bizType: String, to value: SyncParameterValue?, kind: SyncParameterKind = .client
    ) async throws(SyncError) {
        try ArgumentCheck.bizType(bizType)
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
        let userID = sharedState.user?.userID
        guard kind != .server || userID != nil else {
            throw SyncError(.invalidArgument, "a server value belongs to a user: bind a user first")
        }
        try await engine.setParameter(
            DeviceParameter(bizType: BizType(bizType), name: name, value: value?.model), kind: kind, userID: userID)
    }

    /// Returns the value that is in force for the bound user: of the session, of the client, or the last known value of
    /// the server. The value is nil when the default of the configuration applies.
    ///
    /// - Throws: `SyncError.store`.
    public func parameter(_ name: String, of bizType: String) async throws(SyncError) -> SyncParameterValue? {
        try await parameters().filter { $0.bizType.isSame(as: bizType) && $0.name.isSame(as: name) }
            .min { $0.kind.rawValue < $1.kind.rawValue }?.value
    }

    /// Returns all values of the bound user, or of the device when no user is bound.
    ///
    /// - Throws: `SyncError.store`.
    public func parameters() async throws(SyncError) -> [SyncParameter] {
        try await engine.parameters(ofUser: sharedState.user?.userID)
    }

    /// Whether the service has not replied about a value of the kind `server`.
    ///
    /// - Parameters:
    ///   - bizTypes: the Sync IDs of the parameters.
    ///   - userID: the user of the values; nil for the bound user.
    /// - Throws: `SyncError.store`.
    public func hasPendingParameters(
        of bizTypes: Set<String>, ofUser userID: String? = nil
    ) throws(SyncError) -> Bool {
        guard let userID = userID ?? sharedState.user?.userID else { return false }
        return try engine.outbox.hasPendingParameters(ofUser: userID, of: bizTypes)
    }
}
