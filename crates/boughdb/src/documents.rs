use bough_service::api::{
    DeleteDocumentRequest, Document, DocumentRemoval, GetDocumentRequest, ListDocumentsRequest,
    NewDocument, PutDocumentRequest, WriteDocumentsRequest, WriteDocumentsResponse,
};
use bough_session::RawJson;
use serde_json::Value;

use crate::{Bough, Error};

/// The documents of a scope: any JSON by key. A handle, cheap to clone; see [`Bough::documents`].
///
/// They are for what is no conversation: the state of an application or of a user, and long-term memory. They are in no list of
/// sessions, in no search and in no event. A value is kept byte for byte.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), boughdb::Error> {
/// use boughdb::Bough;
/// use serde_json::json;
///
/// let bough = Bough::in_memory()?;
/// let settings = bough.documents("settings");
/// let first = settings.put("theme", json!({ "dark": true })).await?;
/// settings.put_if("theme", json!({ "dark": false }), first).await?;
///
/// // Somebody else put it meanwhile: read it again, then decide.
/// let refused = settings.put_if("theme", json!({ "dark": true }), first).await.unwrap_err();
/// assert_eq!(refused.code(), Some("session/document_conflict"));
///
/// let theme = settings.get("theme").await?.expect("it is there");
/// assert_eq!(theme.value.expect("it was asked for").value(), json!({ "dark": false }));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Documents {
    bough: Bough,
    scope: String,
}

impl Bough {
    /// Names a scope of documents by key. It begins with its first document.
    #[must_use]
    pub fn documents(&self, scope: &str) -> Documents {
        Documents { bough: self.clone(), scope: scope.to_owned() }
    }
}

impl Documents {
    /// The scope.
    #[must_use]
    pub fn scope(&self) -> &str {
        &self.scope
    }

    /// Puts a document; its version. Durable when this returns.
    pub async fn put(&self, key: &str, value: Value) -> Result<u64, Error> {
        self.put_with(key, value, None).await
    }

    /// Puts a document only if it has this version, or with 0 only if there is none; otherwise `session/document_conflict`.
    pub async fn put_if(&self, key: &str, value: Value, version: u64) -> Result<u64, Error> {
        self.put_with(key, value, Some(version)).await
    }

    async fn put_with(
        &self,
        key: &str,
        value: Value,
        expected_version: Option<u64>,
    ) -> Result<u64, Error> {
        let (scope, key, value) = (self.scope.clone(), key.to_owned(), RawJson::from(value));
        let request = PutDocumentRequest { scope, key, value, expected_version };
        let put = self.bough.service().put_document(self.bough.scope(), request).await?;
        Ok(put.version)
    }

    /// The document with a key, if there is one.
    pub async fn get(&self, key: &str) -> Result<Option<Document>, Error> {
        let request = GetDocumentRequest { scope: self.scope.clone(), key: key.to_owned() };
        Ok(self.bough.service().get_document(self.bough.scope(), request).await?)
    }

    /// The documents whose keys begin with `prefix`, in the order of the keys: all of them, page after page.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), boughdb::Error> {
    /// # let bough = boughdb::Bough::in_memory()?;
    /// let notes = bough.documents("notes");
    /// for month in ["2026/05", "2026/04", "2025/12"] {
    ///     notes.put(month, month.into()).await?;
    /// }
    /// let keys: Vec<String> = notes.list("2026/").await?.into_iter().map(|note| note.key).collect();
    /// assert_eq!(keys, ["2026/04", "2026/05"]);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn list(&self, prefix: &str) -> Result<Vec<Document>, Error> {
        let mut found = Vec::new();
        let mut cursor = None;
        loop {
            let request = ListDocumentsRequest {
                scope: self.scope.clone(),
                prefix: Some(prefix.to_owned()),
                keys: None,
                keys_only: None,
                limit: None,
                max_bytes: None,
                cursor,
            };
            let page = self.bough.service().list_documents(self.bough.scope(), request).await?;
            found.extend(page.documents);
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(found);
            }
        }
    }

    /// Puts and deletes documents in one durable write, all of them or none.
    pub async fn write(
        &self,
        put: Vec<NewDocument>,
        delete: Vec<DocumentRemoval>,
    ) -> Result<WriteDocumentsResponse, Error> {
        let request = WriteDocumentsRequest { scope: self.scope.clone(), put, delete };
        Ok(self.bough.service().write_documents(self.bough.scope(), request).await?)
    }

    /// Deletes a document; whether it was there.
    pub async fn delete(&self, key: &str) -> Result<bool, Error> {
        let (scope, key) = (self.scope.clone(), key.to_owned());
        let request = DeleteDocumentRequest { scope, key, expected_version: None };
        let answer = self.bough.service().delete_document(self.bough.scope(), request).await?;
        Ok(answer.deleted)
    }
}
