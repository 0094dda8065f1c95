/// The stored subscriptions of a store's types.
extension EntityStore {
    /// Subscribes a type, or unsubscribes it: then its rows are deleted and later imports are ignored.
    ///
    /// - Returns: whether the type was subscribed before.
    func setSubscribed(_ isSubscribed: Bool, _ typeName: String) throws(EntityError) -> Bool {
        let type = try schema.type(typeName)
        return try write("storing a subscription") { transaction in
            let subscriptions = transaction.subscriptions
            let wasSubscribed = try subscriptions.isSubscribed(typeName)
            try subscriptions.setSubscribed(isSubscribed, typeName)
            if !isSubscribed { try subscriptions.clean(type, keepsPending: false) }
            if isSubscribed, !wasSubscribed { try subscriptions.setNeedsRecovery(true, typeName) }
            return wasSubscribed
        }
    }

    /// Deletes a type's rows without an edit, and stores that a recovery must be requested.
    func deleteForReset(_ typeName: String) throws(EntityError) {
        let type = try schema.type(typeName)
        try write("resetting") { transaction in
            try transaction.subscriptions.clean(type, keepsPending: true)
            try transaction.subscriptions.setNeedsRecovery(true, typeName)
        }
    }

    /// Whether a recovery of the type must be requested.
    func needsRecovery(_ typeName: String) throws(EntityError) -> Bool {
        try read("reading a subscription") { try $0.subscriptions.needsRecovery(typeName) }
    }

    /// Stores that the recovery was requested.
    func clearNeedsRecovery(_ typeName: String) throws(EntityError) {
        try write("storing a recovery") { try $0.subscriptions.setNeedsRecovery(false, typeName) }
    }
}
