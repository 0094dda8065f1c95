import LocalEntities

/// The live list.
extension FieldApp {
    /// Shows the incidents now, and again after each change: of this user, of the backend, of other users.
    func showIncidents(_ show: ([EntityRow<Incident>]) async throws -> Void) async throws {
        let query = RecordQuery(Incident.self).where(\.status != "closed").sort(by: \.id)
        for try await incidents in entities.observe(query) { try await show(incidents) }
    }
}
