/// Uploads parts of logs, and refusals, to the server. An app implements it for a server of its own;
/// `DiagnosisOperations` is the default.
public protocol DiagnosisUploader: Sendable {
    /// Sends one part and waits until the server has stored it. A queue is not sufficient: the queue could send the
    /// part later, over a network that the task does not allow. The call is cancelled when the device changes to such a
    /// network and when the operator deletes the task.
    ///
    /// - Returns: the server's answer. The server must accept a repeated part, which has the same task, run, number and
    ///   SHA-256.
    /// - Throws: any error; the part is then sent again later.
    func submit(_ part: DiagnosisPart) async throws -> DiagnosisAnswer

    /// Reports to the server that the device uploads nothing for a task.
    ///
    /// - Throws: any error; the report is then repeated later.
    func refuse(taskID: String, run: Int, reason: DiagnosisRefusal) async throws
}
