/// Takes parts of logs, and refusals, up to the server.
public protocol DiagnosisUploader: Sendable {
    /// Sends one part, and waits until the server has it for good. To put it into a queue is not enough: it would be
    /// sent later, over a network that the task may not use. Cancelled when the network changes to such a one, or the
    /// operator deletes the task.
    ///
    /// - Returns: the server's answer. A part that it knows by task, run, number and SHA-256 it takes once more.
    /// - Throws: anything: the part is sent again later.
    func submit(_ part: DiagnosisPart) async throws -> DiagnosisAnswer

    /// Tells the server that nothing comes for a task.
    ///
    /// - Throws: anything: it is told again later.
    func refuse(taskID: String, run: Int, reason: DiagnosisRefusal) async throws
}
