import LocalEntities

/// Edit offline, and merge a conflict.
extension FieldApp {
    /// Changes an incident on the device, and sends the change when there is a connection.
    func change(_ id: String, _ edit: (inout EntityRow<Incident>) -> Void) async throws {
        var incident = try incident(id)
        edit(&incident)
        try await entities.saveAndSubmit(&incident)
    }

    /// Merges my edit with the changes of others; a side decides where both have changed the same.
    func merge(_ id: String, preferring side: EntityConflict.Side) async throws {
        var incident = try incident(id)
        guard let conflict = try entities.conflict(of: incident) else { throw FieldError("\(id) has no conflict") }
        try await entities.resolve(&incident, conflict, .merged(conflict.merged(preferring: side)))
    }
}

extension FieldApp {
    /// Reports a new incident.
    func report(_ id: String, title: String) async throws {
        var incident = EntityRow(Incident(id: id, title: title))
        try await entities.saveAndSubmit(&incident)
    }

    /// Returns an incident by its key.
    func incident(_ id: String) throws -> EntityRow<Incident> {
        guard let incident = try entities.findByPrimaryKey(Incident.self, .text(id)) else {
            throw FieldError("there is no incident \(id)")
        }
        return incident
    }

    /// Returns the version of the backend while an edit is in conflict with it.
    func versionOfOthers(_ incident: EntityRow<Incident>) throws -> Incident? {
        guard incident.state.replayFailure > 0, let conflict = try entities.conflict(of: incident) else { return nil }
        return try conflict.theirs.map { try EntityRow<Incident>($0).record }
    }
}
