/// What a store keeps of its types' subscriptions.
extension EntityStore {
    /// Takes data of a type from now on; or deletes it and passes over what still comes.
    ///
    /// - Returns: whether it was taken before.
    func setSubscribed(_ isSubscribed: Bool, _ typeName: String) throws(EntityError) -> Bool {
        let type = try schema.type(typeName)
        return try write("noting a subscription") { transaction in
            try transaction.step("noting a subscription") {
                let wasSubscribed = try transaction.isSubscribed(typeName)
                try transaction.setSubscribed(isSubscribed, typeName)
                if !isSubscribed { try transaction.clean(type, keepsPending: false) }
                if isSubscribed, !wasSubscribed { try transaction.setNeedsRecovery(true, typeName) }
                return wasSubscribed
            }
        }
    }

    /// Deletes a type's rows, but for those with an edit, and notes that all is to be asked for.
    func deleteForReset(_ typeName: String) throws(EntityError) {
        let type = try schema.type(typeName)
        try write("resetting") { transaction in
            try transaction.step("resetting") {
                try transaction.clean(type, keepsPending: true)
                try transaction.setNeedsRecovery(true, typeName)
            }
        }
    }

    /// Whether all that the server has of a type is to be asked for.
    func needsRecovery(_ typeName: String) throws(EntityError) -> Bool {
        try read("reading a subscription") { transaction in
            try transaction.step("reading a subscription") { try transaction.needsRecovery(typeName) }
        }
    }

    /// The feed has been asked.
    func noteRecovery(_ typeName: String) throws(EntityError) {
        try write("noting a recovery") { transaction in
            try transaction.step("noting a recovery") { try transaction.setNeedsRecovery(false, typeName) }
        }
    }
}
